//! Every text that a template places, and what is written there: names that were checked, code, or the text of others, which is
//! written so that the language around it cannot read it.
//!
//! A template or a text of a view that is new fails here until it has its place.

use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag};
use quote::ToTokens as _;
use syn::visit_mut::VisitMut;

use super::*;
use crate::markdown::tests::{dangers, hostile};
use crate::new::names;
use crate::reference::markdown::{cell, code, paragraphs};
use crate::toml;

/// What stands in a place of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// A name of which a check lets pass letters, digits, `-`, `_` and `.` alone, or words of the generator made of such names.
    Name,
    /// Rust code: the user's own, or what an import writes, for which `import/tests/hostile.rs` stands.
    Code,
    /// Lines of a documentation comment.
    RustDoc,
    /// Paragraphs of Markdown.
    Markdown,
    /// A cell of a table of Markdown.
    Cell,
    /// Code in a cell.
    CellCode,
    /// Lines of a comment of Protobuf.
    ProtoComment,
    /// The rest of a line of TOML with a string.
    Toml,
}

use Place::{Cell, CellCode, Code, Markdown, Name, ProtoComment, RustDoc, Toml};

/// The paths of texts of a view, with their places.
type Places = &'static [(&'static [&'static str], Place)];

const NEW: Places = &[
    (&["apiloom"], Toml),
    (
        &[
            "group",
            "kind",
            "krate",
            "name",
            "plural",
            "resource_method",
            "version_method",
        ],
        Name,
    ),
];

const IMPORT: Places = &[
    (&["apiloom"], Toml),
    (
        &[
            "groups[].module",
            "groups[].name",
            "groups[].release",
            "groups[].version_names",
            "groups[].versions[].group",
            "groups[].versions[].kinds[].module",
            "groups[].versions[].kinds[].name",
            "groups[].versions[].name",
            "name",
        ],
        Name,
    ),
];

/// The texts of all views, by template. A flat table.
const PLACES: &[(&str, Places)] = &[
    (
        "apiservice.yaml.tera",
        &[(
            &[
                "services[].group",
                "services[].name",
                "services[].namespace",
                "services[].service",
                "services[].version",
            ],
            Name,
        )],
    ),
    (
        "apply.rs.tera",
        &[
            (
                &["modules[].api_version", "modules[].name", "package"],
                Name,
            ),
            (
                &["modules[].builders[].head", "modules[].builders[].lines[]"],
                Code,
            ),
        ],
    ),
    ("client.rs.tera", &[(&["package"], Name)]),
    (
        "clientset.rs.tera",
        &[
            (
                &[
                    "package",
                    "versions[].api_version",
                    "versions[].clients",
                    "versions[].informers",
                    "versions[].kinds[].forms",
                    "versions[].kinds[].method",
                    "versions[].kinds[].plural",
                    "versions[].method",
                ],
                Name,
            ),
            (&["versions[].kinds[].rust_type"], Code),
        ],
    ),
    ("fake.rs.tera", &[(&["package"], Name), (&["steps"], Code)]),
    ("import/Cargo.toml.tera", IMPORT),
    (
        "import/group.rs.tera",
        &[(
            &[
                "module",
                "name",
                "release",
                "version_names",
                "versions[].group",
                "versions[].kinds[].module",
                "versions[].kinds[].name",
                "versions[].name",
            ],
            Name,
        )],
    ),
    ("import/lib.rs.tera", IMPORT),
    (
        "import/module.rs.tera",
        &[
            (&["about", "types[].name"], Name),
            (
                &[
                    "types[].attributes[]",
                    "types[].keyword",
                    "types[].parts[].attributes[]",
                    "types[].parts[].code",
                    "uses[]",
                ],
                Code,
            ),
            (&["types[].doc[]", "types[].parts[].doc[]"], RustDoc),
        ],
    ),
    (
        "import/version.rs.tera",
        &[(&["group", "kinds[].module", "kinds[].name", "name"], Name)],
    ),
    (
        "index.rs.tera",
        &[
            (&["indexes[].name", "indexes[].rust_name", "package"], Name),
            (
                &[
                    "indexes[].kinds[].key",
                    "indexes[].kinds[].rust_type",
                    "indexes[].kinds[].value",
                    "indexes[].literal",
                ],
                Code,
            ),
        ],
    ),
    (
        "install.rs.tera",
        &[
            (&["package"], Name),
            (&["groups[].constant", "groups[].stores[]"], Code),
        ],
    ),
    (
        "kube.rs.tera",
        &[
            (
                &[
                    "package",
                    "versions[].api_version",
                    "versions[].kinds[].name",
                    "versions[].kinds[].scope",
                    "versions[].module",
                ],
                Name,
            ),
            (&["versions[].kinds[].rust_type"], Code),
        ],
    ),
    (
        "list.rs.tera",
        &[(&["package"], Name), (&["path", "types[].rust_type"], Code)],
    ),
    (
        "main.rs.tera",
        &[(&["package", "server"], Name), (&["steps"], Code)],
    ),
    (
        "messages.proto.tera",
        &[
            (
                &[
                    "imports[]",
                    "messages[].fields[].declaration",
                    "messages[].name",
                    "messages[].reserved[]",
                    "package",
                ],
                Name,
            ),
            (
                &["messages[].comment[]", "messages[].fields[].comment[]"],
                ProtoComment,
            ),
        ],
    ),
    (
        "methods.rs.tera",
        &[
            (
                &[
                    "package",
                    "versions[].api_version",
                    "versions[].kinds[].name",
                    "versions[].kinds[].plural",
                    "versions[].module",
                ],
                Name,
            ),
            (
                &[
                    "versions[].kinds[].methods[]",
                    "versions[].kinds[].rust_type",
                ],
                Code,
            ),
        ],
    ),
    ("mod.rs.tera", &[(&["package"], Name)]),
    ("new/Cargo.toml.tera", NEW),
    ("new/README.md.tera", NEW),
    ("new/controller.rs.tera", NEW),
    ("new/kube_test.rs.tera", NEW),
    ("new/lib.rs.tera", NEW),
    ("new/main.rs.tera", NEW),
    ("new/test.rs.tera", NEW),
    ("new/v1alpha1.rs.tera", NEW),
    (
        "rbac.yaml.tera",
        &[(
            &[
                "roles[].aggregate_to",
                "roles[].name",
                "roles[].rules[].group",
                "roles[].rules[].resource",
                "roles[].rules[].verbs",
            ],
            Name,
        )],
    ),
    (
        "reference.md.tera",
        &[
            (
                &[
                    "package",
                    "versions[].kinds[].anchor",
                    "versions[].kinds[].facts[]",
                    "versions[].kinds[].fields[].type",
                    "versions[].kinds[].name",
                    "versions[].name",
                ],
                Name,
            ),
            (&["versions[].kinds[].description[]"], Markdown),
            (&["versions[].kinds[].fields[].description"], Cell),
            (&["versions[].kinds[].fields[].path"], CellCode),
        ],
    ),
    (
        "registry.rs.tera",
        &[
            (&["package", "stores[].doc", "stores[].function"], Name),
            (&["stores[].rust_type"], Code),
        ],
    ),
];

impl Place {
    /// The texts that this place gets, if it is one for the text of others.
    fn written(self, text: &str) -> Option<Vec<String>> {
        Some(match self {
            Self::Name | Self::Code => return None,
            Self::RustDoc => crate::import::views::doc(Some(text)),
            Self::Markdown => paragraphs(text).into_iter().collect(),
            Self::Cell => vec![cell(text)],
            Self::CellCode => vec![code(text)],
            Self::ProtoComment => {
                let mut file = proto_file(true);
                let message = file.messages.get_mut("Spec").expect("a message");
                message.description = text.lines().map(str::to_owned).collect();
                ProtoView::new(&file).messages.remove(0).comment
            }
            Self::Toml => vec![format!("path = {}", toml::string(text))],
        })
    }
}

/// The paths of all texts of a view.
fn leaves(value: &Value, path: &str, out: &mut BTreeSet<String>) {
    match value {
        Value::String(_) => drop(out.insert(path.to_owned())),
        Value::Array(items) => {
            let path = format!("{path}[]");
            items.iter().for_each(|item| leaves(item, &path, out));
        }
        Value::Object(fields) => {
            let dot = if path.is_empty() { "" } else { "." };
            for (name, field) in fields {
                leaves(field, &format!("{path}{dot}{name}"), out);
            }
        }
        _ => {}
    }
}

/// Writes texts to a place of a view; those of a list are its items.
fn place(value: &mut Value, path: &str, texts: &[String]) {
    let (step, rest) = path.split_at(path.find(['.', '[']).unwrap_or(path.len()));
    match value {
        Value::Object(fields) => {
            let below = fields.get_mut(step).expect("the path is one of the view");
            place(below, rest.strip_prefix('.').unwrap_or(rest), texts);
        }
        Value::Array(_) if path == "[]" => *value = texts.into(),
        Value::Array(items) => {
            let below = path.trim_start_matches("[]").trim_start_matches('.');
            items.iter_mut().for_each(|item| place(item, below, texts));
        }
        text => *text = texts.concat().into(),
    }
}

#[test]
fn every_text_of_a_template_has_its_place() {
    let views = views(&full());
    for (template, view) in &views {
        let mut found = BTreeSet::new();
        leaves(view, "", &mut found);
        let places = PLACES.iter().filter(|(name, _)| name == template);
        let paths = places.flat_map(|(_, places)| places.iter().flat_map(|(paths, _)| *paths));
        let known = paths.map(|path| (*path).to_owned()).collect();
        assert_eq!(found, known, "{template}");
    }
    assert_eq!(views.len(), PLACES.len());
}

/// Removes documentation comments.
struct WithoutDocs;

impl VisitMut for WithoutDocs {
    fn visit_attributes_mut(&mut self, attributes: &mut Vec<syn::Attribute>) {
        attributes.retain(|attribute| !attribute.path().is_ident("doc"));
    }
}

/// What a file says apart from the text of others.
fn skeleton(template: &str, text: &str) -> String {
    let kept = |is_text: fn(&str) -> bool| {
        let lines = text.lines().filter(|line| !is_text(line.trim_start()));
        lines.collect::<Vec<_>>().join("\n")
    };
    if template.ends_with(".rs.tera") {
        let mut file = syn::parse_file(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        WithoutDocs.visit_file_mut(&mut file);
        file.to_token_stream().to_string()
    } else if template.ends_with(".md.tera") {
        let is_text = |event: &Event<'_>| match event {
            Event::Text(_) | Event::Code(_) | Event::SoftBreak | Event::End(_) => true,
            Event::Start(Tag::Paragraph | Tag::List(_) | Tag::Item | Tag::CodeBlock(_)) => true,
            Event::InlineHtml(html) => matches!(&**html, "<br>" | "<code>" | "</code>"),
            _ => false,
        };
        let events = Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES);
        let events = events.filter(|event| !is_text(event));
        events.map(|event| format!("{event:?}\n")).collect()
    } else if template.ends_with(".proto.tera") {
        kept(|line| line.starts_with("//"))
    } else {
        kept(|line| line.starts_with("apiloom = { path = \""))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_of_others_leaves_its_place(text in hostile()) {
        let renderer = Renderer::new(String::new()).expect("the templates parse");
        let views = views(&full());
        let mut count = 0;
        let places = PLACES.iter().flat_map(|(template, places)| {
            places.iter().flat_map(move |(paths, of)| paths.iter().map(move |path| (*template, *path, *of)))
        });
        for (template, path, of) in places {
            let Some(texts) = of.written(&text) else { continue };
            let render = |texts: &[String]| {
                let mut view = views[template].clone();
                place(&mut view, path, texts);
                renderer.plain(template, &view).expect("the template fits its view")
            };
            let plain = of.written("x").expect("it is a place for texts");
            let (hostile, plain) = (render(&texts), render(&plain));
            prop_assert_eq!(skeleton(template, &hostile), skeleton(template, &plain), "{} of {}", path, template);
            count += 1;
        }
        prop_assert!(count > 10, "{}", count);
        let docs = RustDoc.written(&text).expect("it is a place for texts");
        let docs: Vec<&str> = docs.iter().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
        prop_assert_eq!(dangers(&docs.join("\n")), Vec::<String>::new());
        let toml = toml::string(&text);
        prop_assert!(!toml.contains(|c: char| c.is_ascii_control()), "{}", toml);
        prop_assert_eq!(serde_json::from_str::<String>(&toml).expect("JSON"), text);
    }

    #[test]
    fn names_are_nothing_else(text in hostile()) {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        for is_good in [
            names::check_package(&text, false).is_ok(),
            names::check_group(&text).is_ok(),
            names::check_kind(&text).is_ok(),
        ] {
            prop_assert!(!is_good || text.chars().all(is_name), "{}", text);
        }
    }
}

#[test]
fn a_text_that_leaves_its_place_is_seen() {
    let doc = |text: &str| format!("/// {text}\npub struct A;\n");
    let benign = skeleton("a.rs.tera", &doc("x"));
    assert_eq!(skeleton("a.rs.tera", &doc("*/ y")), benign);
    assert_ne!(skeleton("a.rs.tera", &doc("x\nfn f() {}")), benign);
    assert_ne!(
        skeleton("a.proto.tera", "// a\nmessage"),
        skeleton("a.proto.tera", "// a")
    );
    assert_ne!(skeleton("a.md.tera", "<b>"), skeleton("a.md.tera", "x"));
    assert!(!dangers("```\nlet a;\n```").is_empty() && !dangers("[`Vec`]").is_empty());
}
