//! One template per artifact and the table of them. No logic.
//!
//! Every name and condition is decided by the generator's views; a template only places finished text.

/// Every template: its name and its text.
pub const TEMPLATES: &[(&str, &str)] = &[
    (
        "apiservice.yaml.tera",
        include_str!("../apiservice.yaml.tera"),
    ),
    ("apply.rs.tera", include_str!("../apply.rs.tera")),
    ("client.rs.tera", include_str!("../client.rs.tera")),
    ("clientset.rs.tera", include_str!("../clientset.rs.tera")),
    ("fake.rs.tera", include_str!("../fake.rs.tera")),
    (
        "import/Cargo.toml.tera",
        include_str!("../import/Cargo.toml.tera"),
    ),
    (
        "import/group.rs.tera",
        include_str!("../import/group.rs.tera"),
    ),
    ("import/lib.rs.tera", include_str!("../import/lib.rs.tera")),
    (
        "import/module.rs.tera",
        include_str!("../import/module.rs.tera"),
    ),
    (
        "import/version.rs.tera",
        include_str!("../import/version.rs.tera"),
    ),
    ("index.rs.tera", include_str!("../index.rs.tera")),
    ("install.rs.tera", include_str!("../install.rs.tera")),
    ("kube.rs.tera", include_str!("../kube.rs.tera")),
    ("list.rs.tera", include_str!("../list.rs.tera")),
    ("main.rs.tera", include_str!("../main.rs.tera")),
    (
        "messages.proto.tera",
        include_str!("../messages.proto.tera"),
    ),
    ("methods.rs.tera", include_str!("../methods.rs.tera")),
    ("mod.rs.tera", include_str!("../mod.rs.tera")),
    (
        "new/Cargo.toml.tera",
        include_str!("../new/Cargo.toml.tera"),
    ),
    ("new/README.md.tera", include_str!("../new/README.md.tera")),
    (
        "new/controller.rs.tera",
        include_str!("../new/controller.rs.tera"),
    ),
    (
        "new/kube_test.rs.tera",
        include_str!("../new/kube_test.rs.tera"),
    ),
    ("new/lib.rs.tera", include_str!("../new/lib.rs.tera")),
    ("new/main.rs.tera", include_str!("../new/main.rs.tera")),
    ("new/test.rs.tera", include_str!("../new/test.rs.tera")),
    (
        "new/v1alpha1.rs.tera",
        include_str!("../new/v1alpha1.rs.tera"),
    ),
    ("rbac.yaml.tera", include_str!("../rbac.yaml.tera")),
    ("reference.md.tera", include_str!("../reference.md.tera")),
    ("registry.rs.tera", include_str!("../registry.rs.tera")),
];
