//! Phase 2: gets the documents that need the compiled schemas from the built server, and turns them into files.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use apiloom_meta::kind::ProtoFile;
use serde::Deserialize as _;
use serde_json::{Map, Value};

use crate::generate::{self, Files, RelPath, proto_file};
use crate::reference::ReferenceView;

/// The hidden subcommand of every generated server: prints one JSON object from name to document.
const SUBCOMMAND: &str = "__dump";

/// The key of the notes for readers of the documents: lines by the documents' names.
const NOTES: &str = "notes";

/// The prefix of the contents of `.proto` files.
const PROTO: &str = "proto/";

/// The OpenAPI document of all groups and versions together. The others, one for each group and version, say the same.
const OPENAPI_V2: &str = "openapi/v2.json";

/// The documents of a server, by name.
#[derive(Debug)]
pub(crate) struct Dump {
    documents: Map<String, Value>,
    /// The contents of `.proto` files, by path.
    pub(crate) proto: BTreeMap<String, ProtoFile>,
}

/// Runs the server's dump; the OpenAPI v2 document is left out unless it is wanted.
pub(crate) fn dump(server: &Path, openapi_v2: bool) -> Result<Dump, String> {
    let output = Command::new(server)
        .arg(SUBCOMMAND)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot start {}: {error}", server.display()))?;
    if !output.status.success() {
        return Err(format!(
            "{} gave no documents ({}): generated/openapi and generated/crds stay as they were",
            server.display(),
            output.status
        ));
    }
    let unknown = |error: serde_json::Error| {
        format!(
            "{} {SUBCOMMAND} printed something else than documents: {error}",
            server.display()
        )
    };
    let mut documents: Map<String, Value> =
        serde_json::from_slice(&output.stdout).map_err(unknown)?;
    if !openapi_v2 {
        documents.remove(OPENAPI_V2);
    }
    let mut proto = BTreeMap::new();
    for (name, document) in &documents {
        if let Some(path) = name.strip_prefix(PROTO) {
            let file = ProtoFile::deserialize(document).map_err(unknown)?;
            proto.insert(path.to_owned(), file);
        }
    }
    documents.retain(|name, _| !name.starts_with(PROTO));
    Ok(Dump { documents, proto })
}

impl Dump {
    /// The files of the documents of a package.
    pub(crate) fn files(&self, package: &str, header: &str) -> Result<Files, String> {
        let mut files = render(&self.documents, header)?;
        if let Some(view) = ReferenceView::new(package, &self.documents) {
            let file = generate::reference(&view, header).map_err(|error| error.to_string())?;
            files.insert("generated/reference.md".to_owned(), file);
        }
        for (path, file) in &self.proto {
            if !path.split('/').all(is_plain) {
                return Err(format!("the server names a strange file: {path}"));
            }
            let bytes = proto_file(file, header).map_err(|error| error.to_string())?;
            files.insert(format!("generated/{PROTO}{path}"), bytes);
        }
        Ok(files)
    }
}

/// Whether a part of a path names a file or a folder inside of the one before.
fn is_plain(part: &str) -> bool {
    !part.is_empty()
        && !part.starts_with('.')
        && part
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
}

/// Renders documents as files.
fn render(documents: &Map<String, Value>, header: &str) -> Result<Files, String> {
    documents
        .iter()
        .filter(|(name, _)| *name != NOTES)
        .map(|(name, document)| {
            let path = place(name)
                .ok_or_else(|| format!("the server names a document of no known sort: {name}"))?;
            let bytes = if path.ends_with(".yaml") {
                let notes = documents.get(NOTES).and_then(|notes| notes.get(name));
                yaml(document, header, notes)?
            } else {
                json(document)?
            };
            Ok((path, bytes))
        })
        .collect()
}

/// `openapi/v3/apis/GROUP/VERSION.json` becomes `generated/openapi/v3/GROUP_VERSION.json`.
fn place(name: &str) -> Option<RelPath> {
    let parts: Vec<&str> = name.split('/').collect();
    if !parts.iter().all(|part| is_plain(part)) {
        return None;
    }
    let path = match parts.as_slice() {
        ["openapi", "v2.json"] => "openapi/v2.json".to_owned(),
        ["openapi", "v3", "apis", rest @ ..] | ["openapi", "v3", rest @ ..]
            if !rest.is_empty() && name.ends_with(".json") =>
        {
            format!("openapi/v3/{}", rest.join("_"))
        }
        ["crds", resource] => format!("crds/{}.yaml", resource.trim_end_matches(".yaml")),
        _ => return None,
    };
    Some(format!("generated/{path}"))
}

fn json(document: &Value) -> Result<Vec<u8>, String> {
    let mut text = serde_json::to_vec_pretty(document).map_err(|error| error.to_string())?;
    text.push(b'\n');
    Ok(text)
}

fn yaml(document: &Value, header: &str, notes: Option<&Value>) -> Result<Vec<u8>, String> {
    // Folding long lines would lose spaces.
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    let mut text = format!("# {header}\n");
    let notes = notes.and_then(Value::as_array).into_iter().flatten();
    for line in notes.filter_map(Value::as_str).flat_map(str::lines) {
        text.push_str("# ");
        text.push_str(line);
        text.push('\n');
    }
    serde_saphyr::to_fmt_writer_with_options(&mut text, document, options)
        .map_err(|error| error.to_string())?;
    Ok(text.into_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(name: &str, expected: Option<&str>) {
        assert_eq!(place(name).as_deref(), expected, "{name}");
    }

    #[test]
    fn documents_have_their_places() {
        check("openapi/v2.json", Some("generated/openapi/v2.json"));
        check(
            "openapi/v3/apis/a.com/v1.json",
            Some("generated/openapi/v3/a.com_v1.json"),
        );
        check(
            "openapi/v3/api/v1.json",
            Some("generated/openapi/v3/api_v1.json"),
        );
        check(
            "crds/things.a.com",
            Some("generated/crds/things.a.com.yaml"),
        );
    }

    #[test]
    fn notes_stand_above_their_document() {
        let documents = json!({"crds/a.b": {"k": 1}, "crds/c.d": {"k": 2}, "notes": {"crds/a.b": ["one", "two\nthree"]}});
        let files = render(documents.as_object().expect("an object"), "header").expect("renders");
        let text = |path: &str| String::from_utf8_lossy(&files[path]).into_owned();
        assert_eq!(
            text("generated/crds/a.b.yaml"),
            "# header\n# one\n# two\n# three\nk: 1\n"
        );
        assert_eq!(text("generated/crds/c.d.yaml"), "# header\nk: 2\n");
        assert_eq!(files.len(), 2);
    }

    #[test]
    fn messages_become_files_of_their_paths() {
        let file = ProtoFile {
            package: "com.a.v1".to_owned(),
            ..ProtoFile::default()
        };
        let mut dump = Dump {
            documents: Map::new(),
            proto: BTreeMap::from([("k8s.io/x/generated.proto".to_owned(), file.clone())]),
        };
        let files = dump.files("p", "header").expect("renders");
        assert_eq!(
            files.iter().next(),
            Some((
                &"generated/proto/k8s.io/x/generated.proto".to_owned(),
                &b"// header\nsyntax = \"proto2\";\n\npackage com.a.v1;\n".to_vec()
            ))
        );
        for path in ["../x.proto", "", "/x.proto", "a//x.proto"] {
            dump.proto = BTreeMap::from([(path.to_owned(), file.clone())]);
            assert!(dump.files("p", "header").is_err(), "{path}");
        }
    }

    #[test]
    fn unknown_documents_have_none() {
        for name in [
            "",
            "x.json",
            "openapi/v3/../../x.json",
            "crds/a/b",
            "crds/..",
            "/openapi/v2.json",
            "openapi/v3",
        ] {
            check(name, None);
        }
    }

    #[test]
    fn yaml_reads_back_as_it_was() {
        let texts = [
            "",
            " x",
            "x ",
            "on",
            "1.0",
            "0x1",
            "null",
            "~",
            "- a",
            "a: b",
            "a #b",
            "\"",
            "'",
            "a\n",
            "\na",
            "a\n\n b\n",
            "\t",
            "é",
            "%a",
            "@a",
            "2001-01-01",
            "=",
            "<<",
        ];
        // Long lines are folded.
        let long = [
            "word ",
            "two  spaces ",
            " leading",
            "unbroken",
            "# hash ",
            "a: b ",
            "line\n",
            "a\n\n  b\n ",
        ];
        let texts = texts
            .map(str::to_owned)
            .into_iter()
            .chain(long.map(|text| text.repeat(40)));
        for text in texts {
            let document = json!({ "a": [text], "b": { "y": 1, "1": true, "": text }, "c": [{}, []], "d": text });
            let yaml = yaml(&document, "header", None).expect("it is plain data");
            let yaml = String::from_utf8(yaml).expect("UTF-8");
            assert!(yaml.ends_with('\n'));
            let back = serde_saphyr::from_str::<Value>(&yaml).map_err(|error| error.to_string());
            assert_eq!(back, Ok(document), "{yaml}");
        }
    }
}
