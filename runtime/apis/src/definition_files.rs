//! CustomResourceDefinitions in files, folders and standard input, as `apiloom serve` installs them and `apiloom import`
//! reads them; and the documents of OpenAPI among them.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use apiloom_meta::codec::{self, Format};
use serde_json::Value;

/// Maximum size of one input. The largest bundles of definitions have some megabytes.
const MAX_BYTES: u64 = 256 << 20;

/// Extensions of the files that are read in a folder.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// The group of definitions, before the version.
const GROUP: &str = "apiextensions.k8s.io/";

/// The version of definitions that Kubernetes serves.
const API_VERSION: &str = "apiextensions.k8s.io/v1";

/// A CustomResourceDefinition, with the place where it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct DefinitionFile {
    /// The file, and the number of the document if it has several: `crds/all.yaml, document 2`.
    pub place: String,
    /// `metadata.name`; empty if it has none.
    pub name: String,
    /// The definition.
    pub document: Value,
}

/// The definitions that were read.
#[derive(Clone, Debug, Default)]
pub struct DefinitionFiles {
    /// In the order in which they were read; the files of a folder are sorted.
    pub definitions: Vec<DefinitionFile>,
    /// Documents of OpenAPI, of any version, in the order in which they were read. They have no name.
    pub openapi: Vec<DefinitionFile>,
    /// Number of documents that are neither, and were skipped.
    pub others: usize,
}

impl DefinitionFiles {
    /// Reads files, folders with all folders in them, and `-`, standard input. Of a folder, files whose names end in `.yaml`,
    /// `.yml` or `.json` are read; symbolic links to folders are not followed there. A document may be a list of definitions.
    ///
    /// ```
    /// use apiloom_apis::definition_files::DefinitionFiles;
    /// # let folder = std::env::temp_dir().join("apiloom-definition-files");
    /// # std::fs::create_dir_all(&folder)?;
    /// let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: foos.ex.io}\n";
    /// std::fs::write(folder.join("foos.yaml"), definition)?;
    /// let read = DefinitionFiles::read(&[&folder])?;
    /// assert_eq!(read.definitions[0].name, "foos.ex.io");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The first input that cannot be read, with its path, the document and the line.
    pub fn read<P: AsRef<Path>>(paths: &[P]) -> Result<Self, String> {
        let mut files = Self::default();
        for path in paths.iter().map(AsRef::as_ref) {
            if path.as_os_str() == "-" {
                files.add_file("standard input", &mut io::stdin().lock())?;
            } else {
                files.add_path(path)?;
            }
        }
        Ok(files)
    }

    fn add_path(&mut self, path: &Path) -> Result<(), String> {
        let fail = |error: io::Error| format!("cannot read {}: {error}", path.display());
        // Anything but a folder is read as a file: a shell gives pipes for `<(..)`.
        if !fs::metadata(path).map_err(fail)?.is_dir() {
            let mut file = File::open(path).map_err(fail)?;
            return self.add_file(&path.display().to_string(), &mut file);
        }
        let entries = fs::read_dir(path).map_err(fail)?;
        let mut below = entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(fail)?;
        below.sort();
        for path in below {
            // A link may lead back to a folder above.
            let is_link = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_symlink());
            let extension = path.extension();
            let is_document = extension
                .is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known));
            if is_document && path.is_file() || path.is_dir() && !is_link {
                self.add_path(&path)?;
            }
        }
        Ok(())
    }

    fn add_file(&mut self, place: &str, file: &mut dyn Read) -> Result<(), String> {
        let mut bytes = Vec::new();
        let read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|error| format!("cannot read {place}: {error}"))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(format!("{place} has more than {MAX_BYTES} bytes"));
        }
        let text = String::from_utf8(bytes).map_err(|_| format!("{place} is no text in UTF-8"))?;
        self.add_text(&text, place)
    }

    /// Adds the definitions in a text: documents of YAML, or one of JSON.
    ///
    /// # Errors
    /// As [`DefinitionFiles::read`].
    pub fn add_text(&mut self, text: &str, place: &str) -> Result<(), String> {
        let is_json = text.trim_start().starts_with('{');
        let documents = documents(text);
        let has_several = documents.len() > 1;
        for (at, document) in documents.into_iter().enumerate() {
            let place = if has_several {
                format!("{place}, document {}", at + 1)
            } else {
                place.to_owned()
            };
            let document =
                decode(document, is_json).map_err(|error| format!("{place}: {error}"))?;
            self.add(&document, &place)?;
        }
        Ok(())
    }

    /// Adds a definition, or those of a list.
    ///
    /// # Errors
    /// A definition of an API version that Kubernetes no longer serves.
    pub fn add(&mut self, document: &Value, place: &str) -> Result<(), String> {
        let api_version = document["apiVersion"].as_str().unwrap_or_default();
        let kind = document["kind"].as_str().unwrap_or_default();
        if kind == "List" || kind == "CustomResourceDefinitionList" {
            let items = document["items"].as_array().map_or(&[][..], Vec::as_slice);
            for item in items {
                let mut item = item.clone();
                // Items of a typed list may have neither.
                if item.get("kind").is_none() && kind != "List" && item.is_object() {
                    item["kind"] = "CustomResourceDefinition".into();
                    item["apiVersion"] = api_version.into();
                }
                self.add(&item, place)?;
            }
            return Ok(());
        }
        let is_openapi = ["openapi", "swagger"]
            .iter()
            .any(|name| document[name].is_string());
        if is_openapi {
            self.openapi.push(DefinitionFile {
                place: place.to_owned(),
                name: String::new(),
                document: document.clone(),
            });
            return Ok(());
        }
        if kind != "CustomResourceDefinition" || !api_version.starts_with(GROUP) {
            self.others += usize::from(!document.is_null());
            return Ok(());
        }
        let name = document["metadata"]["name"].as_str().unwrap_or_default();
        if api_version != API_VERSION {
            let name = if name.is_empty() {
                "a definition without a name"
            } else {
                name
            };
            return Err(format!(
                "{place}: {name} is of {api_version}, which Kubernetes no longer serves\n  \
                 help: convert it to {API_VERSION} first, as `kubectl convert` does"
            ));
        }
        self.definitions.push(DefinitionFile {
            place: place.to_owned(),
            name: name.to_owned(),
            document: document.clone(),
        });
        Ok(())
    }
}

/// The documents of a text, without those that have only comments. They begin at lines with `---`, as kubectl reads them.
fn documents(text: &str) -> Vec<&str> {
    let mut starts = vec![0];
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        // What follows on the line, such as a comment, belongs to the document.
        if line.starts_with("---") {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts[1..].iter().copied().chain([text.len()]);
    let parts = starts
        .iter()
        .zip(ends)
        .map(|(start, end)| &text[*start..end]);
    parts.filter(|part| has_content(part)).collect()
}

/// Whether a document has more than comments.
fn has_content(part: &str) -> bool {
    let mut lines = part
        .lines()
        .map(|line| line.trim_start_matches("---").trim());
    lines.any(|line| !line.is_empty() && !line.starts_with('#') && !line.starts_with('%'))
}

/// Decodes a document as a server decodes the body of a request.
fn decode(document: &str, is_json: bool) -> Result<Value, String> {
    let format = if is_json { Format::Json } else { Format::Yaml };
    let decoded = codec::decode_freely(document.as_bytes(), format);
    // What begins like JSON may be YAML in its flow style.
    let decoded = if is_json && decoded.is_err() {
        codec::decode_freely(document.as_bytes(), Format::Yaml)
    } else {
        decoded
    };
    let decoded = decoded.map_err(|error| error.to_string())?;
    match decoded.strict.first() {
        Some(duplicate) => Err(duplicate.clone()),
        None => Ok(decoded.value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFINITION: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: foos.ex.io}\n";

    fn read(text: &str) -> Result<DefinitionFiles, String> {
        let mut files = DefinitionFiles::default();
        files.add_text(text, "a.yaml").map(|()| files)
    }

    fn places(text: &str) -> Vec<(String, String)> {
        let files = read(text).unwrap();
        let found = files.definitions.into_iter();
        found.map(|found| (found.place, found.name)).collect()
    }

    #[test]
    fn documents_are_counted_without_empty_ones() {
        let one = [("a.yaml".to_owned(), "foos.ex.io".to_owned())];
        assert_eq!(places(DEFINITION), one);
        assert_eq!(
            places(&format!("# A comment.\n---\n{DEFINITION}---\n# The end.\n")),
            one
        );
        let second = DEFINITION.replace("foos", "bars");
        assert_eq!(
            places(&format!("--- # first\n{DEFINITION}\n---\n\n---\n{second}")),
            [
                ("a.yaml, document 1".to_owned(), "foos.ex.io".to_owned()),
                ("a.yaml, document 2".to_owned(), "bars.ex.io".to_owned()),
            ]
        );
    }

    #[test]
    fn lists_have_definitions_and_other_documents_are_counted() {
        let text = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinitionList\nitems: [{metadata: {name: foos.ex.io}}, 1]\n---\nkind: ConfigMap\n---\nnull\n";
        let files = read(text).unwrap();
        assert_eq!(files.definitions.len(), 1);
        assert_eq!(
            files.definitions[0].document["kind"],
            "CustomResourceDefinition"
        );
        assert_eq!(files.others, 2);
    }

    #[test]
    fn documents_of_openapi_are_kept_apart() {
        let files = read("openapi: 3.0.0\n---\nswagger: '2.0'\n---\na: 1\n").unwrap();
        let places: Vec<_> = files.openapi.iter().map(|file| &*file.place).collect();
        assert_eq!(places, ["a.yaml, document 1", "a.yaml, document 2"]);
        assert_eq!((files.definitions.len(), files.others), (0, 1));
    }

    #[test]
    fn errors_name_the_document() {
        let check = |text: &str, expected: &str| {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        };
        check(
            "a: [1\n",
            "a.yaml: error converting YAML to JSON: yaml: line ",
        );
        check(
            &format!("{DEFINITION}---\na: 1\na: 2\n"),
            "a.yaml, document 2: line 3: key \"a\" already set in map",
        );
        let old = DEFINITION.replace("/v1", "/v1beta1");
        check(
            &old,
            "a.yaml: foos.ex.io is of apiextensions.k8s.io/v1beta1, which",
        );
        let error = DefinitionFiles::read(&["/no/such/file"]).unwrap_err();
        assert!(error.starts_with("cannot read /no/such/file: "), "{error}");
    }

    #[test]
    fn json_and_flow_style_are_read() {
        let json = r#"{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "foos.ex.io"}}"#;
        assert_eq!(places(json).len(), 1);
        let flow = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}";
        assert_eq!(places(flow), [("a.yaml".to_owned(), String::new())]);
    }
}
