//! Writes packages of many kinds, one file per kind and version, as users would.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use apiloom_cli::{Console, execute};

/// The versions of each kind; the first one is the hub.
pub(crate) const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// The attributes and the type of a field; fields take them in turn.
type Shape = (&'static str, &'static str);

/// A package to write.
pub(crate) struct Package<'a> {
    pub(crate) kinds: usize,
    pub(crate) fields: usize,
    pub(crate) shapes: &'a [Shape],
    /// The dependencies of its manifest.
    pub(crate) dependencies: &'a str,
    /// Only the structs, with derives of serde and schemars.
    pub(crate) plain: bool,
}

impl Package<'_> {
    pub(crate) fn write(&self, dir: &Path) -> io::Result<()> {
        let bin = if self.plain {
            ""
        } else {
            "[[bin]]\nname = \"large-server\"\npath = \"generated/main.rs\"\n"
        };
        let manifest = format!(
            "[package]\nname = \"large\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n{bin}\n[dependencies]\n{}\n\n[workspace]\n",
            self.dependencies
        );
        fs::create_dir_all(dir.join("src"))?;
        fs::write(dir.join("Cargo.toml"), manifest)?;
        let mut root = String::new();
        if !self.plain {
            root.push_str("pub mod generated;\napiloom::group! { name = \"large.example.com\", versions = [v1, v1beta1] }\n");
        }
        for version in VERSIONS {
            let _ = writeln!(root, "pub mod {version};");
            let folder = dir.join("src").join(version);
            fs::create_dir_all(&folder)?;
            let modules: String = (0..self.kinds)
                .map(|kind| format!("pub mod kind{kind};\n"))
                .collect();
            fs::write(folder.join("mod.rs"), modules)?;
            for kind in 0..self.kinds {
                fs::write(
                    folder.join(format!("kind{kind}.rs")),
                    self.source(version, kind),
                )?;
            }
        }
        fs::write(dir.join("src/lib.rs"), root)
    }

    fn source(&self, version: &str, kind: usize) -> String {
        let role = match version {
            "v1" => "hub, storage".to_owned(),
            _ => format!("spoke_of = crate::v1::kind{kind}::Kind{kind}"),
        };
        let derives = "#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]\n#[serde(rename_all = \"camelCase\")]";
        let (imports, resource, api) = if self.plain {
            (
                "use std::collections::BTreeMap;",
                derives.to_owned(),
                derives,
            )
        } else {
            let resource = format!(
                "#[apiloom::resource(group = \"large.example.com\", version = \"{version}\", namespaced, status, {role}, printcolumn(name = \"First\", path = spec.field0))]"
            );
            (
                "#[allow(unused_imports)]\nuse std::collections::BTreeMap;\nuse apiloom::prelude::*;",
                resource,
                match version {
                    "v1" => "#[apiloom::api]",
                    _ => "#[apiloom::api]\n#[api(convert(peer = PEER))]",
                },
            )
        };
        let metadata = if self.plain {
            "BTreeMap<String, String>"
        } else {
            "ObjectMeta"
        };
        let api =
            |part: &str| api.replace("PEER", &format!("crate::v1::kind{kind}::Kind{kind}{part}"));
        let (status, spec) = (api("Status"), api("Spec"));
        let mut text = format!(
            "{imports}\n\n/// Kind{kind} is one of many.\n{resource}\n\
             pub struct Kind{kind} {{\n    pub metadata: {metadata},\n    pub spec: Kind{kind}Spec,\n    pub status: Option<Kind{kind}Status>,\n}}\n\n\
             /// Kind{kind}Status is empty.\n{status}\npub struct Kind{kind}Status {{}}\n\n\
             /// Kind{kind}Spec has fields.\n{spec}\npub struct Kind{kind}Spec {{\n"
        );
        for field in 0..self.fields {
            let (rules, ty) = self.shapes[field % self.shapes.len()];
            let attribute = if rules.is_empty() || self.plain {
                String::new()
            } else {
                format!("    #[api({rules})]\n")
            };
            let _ = writeln!(
                text,
                "    /// Field {field}.\n{attribute}    pub field{field}: {ty},"
            );
        }
        text.push_str("}\n");
        text
    }
}

/// Runs `apiloom generate` in this process; an error is the text that the command prints.
pub(crate) fn generate(package: &Path, flags: &[&str]) -> Result<(), Box<dyn Error>> {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut arguments = vec!["apiloom".into(), "generate".into()];
    arguments.extend(flags.iter().map(Into::into));
    arguments.push(package.as_os_str().to_owned());
    let code = execute(
        arguments,
        &mut Console {
            out: &mut out,
            err: &mut err,
            terminal: false,
        },
    );
    if code == 0 {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&err).into())
    }
}
