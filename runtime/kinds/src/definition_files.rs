//! CustomResourceDefinitions in files, folders and standard input, as `apiloom serve` installs them and `apiloom import`
//! reads them; and the documents of OpenAPI among them.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

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
    /// Fields that a document has twice, with its place: the last value is read, as kubectl does.
    pub duplicates: Vec<String>,
}

/// An input, or why a folder cannot be read.
enum Input {
    Stdin,
    File(PathBuf),
    Failed(String),
}

impl Input {
    fn read(&self) -> Result<DefinitionFiles, String> {
        let mut files = DefinitionFiles::default();
        match self {
            Self::Stdin => files.add_file("standard input", &mut io::stdin().lock())?,
            Self::File(path) => {
                let mut file = File::open(path).map_err(|error| cannot_read(path, &error))?;
                files.add_file(&path.display().to_string(), &mut file)?;
            }
            Self::Failed(problem) => return Err(problem.clone()),
        }
        Ok(files)
    }
}

impl DefinitionFiles {
    /// Reads files, folders with all folders in them, and `-`, standard input. Of a folder, files whose names end in `.yaml`,
    /// `.yml` or `.json` are read; symbolic links to folders are not followed there. A document may be a list of definitions.
    ///
    /// ```
    /// use apiloom_kinds::definition_files::DefinitionFiles;
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
        let mut inputs = Vec::new();
        for path in paths.iter().map(AsRef::as_ref) {
            if path.as_os_str() == "-" {
                inputs.push(Input::Stdin);
            } else if let Err(problem) = find_files(path, &mut inputs) {
                inputs.push(Input::Failed(problem));
                break;
            }
        }
        let mut files = Self::default();
        for read in read_all(&inputs) {
            files.append(read?);
        }
        Ok(files)
    }

    fn append(&mut self, mut files: Self) {
        self.definitions.append(&mut files.definitions);
        self.openapi.append(&mut files.openapi);
        self.others += files.others;
        self.duplicates.append(&mut files.duplicates);
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
            let (document, duplicates) =
                decode(document, is_json).map_err(|error| format!("{place}: {error}"))?;
            let duplicates = duplicates.iter().map(|text| format!("{place}: {text}"));
            self.duplicates.extend(duplicates);
            self.add(document, &place)?;
        }
        Ok(())
    }

    /// Adds a definition, or those of a list.
    ///
    /// # Errors
    /// A definition of an API version that Kubernetes no longer serves.
    pub fn add(&mut self, mut document: Value, place: &str) -> Result<(), String> {
        let kind = document["kind"].as_str().unwrap_or_default();
        let is_typed = kind == "CustomResourceDefinitionList";
        if kind == "List" || is_typed {
            let items = document.get_mut("items").map(Value::take);
            let Some(Value::Array(items)) = items else {
                return Ok(());
            };
            let api_version = document["apiVersion"].as_str().unwrap_or_default();
            for mut item in items {
                // Items of a typed list may have neither.
                if item.get("kind").is_none() && is_typed && item.is_object() {
                    item["kind"] = "CustomResourceDefinition".into();
                    item["apiVersion"] = api_version.into();
                }
                self.add(item, place)?;
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
                document,
            });
            return Ok(());
        }
        let kind = document["kind"].as_str().unwrap_or_default();
        let api_version = document["apiVersion"].as_str().unwrap_or_default();
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
            document,
        });
        Ok(())
    }
}

fn cannot_read(path: &Path, error: &io::Error) -> String {
    format!("cannot read {}: {error}", path.display())
}

/// Adds a file, or those of a folder with all folders in it.
fn find_files(path: &Path, inputs: &mut Vec<Input>) -> Result<(), String> {
    let fail = |error: io::Error| cannot_read(path, &error);
    // Anything but a folder is read as a file: a shell gives pipes for `<(..)`.
    if !fs::metadata(path).map_err(fail)?.is_dir() {
        inputs.push(Input::File(path.to_owned()));
        return Ok(());
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
        let is_document =
            extension.is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known));
        if is_document && path.is_file() || path.is_dir() && !is_link {
            find_files(&path, inputs)?;
        }
    }
    Ok(())
}

/// Reads inputs, as many at the same time as there are processors. The results are in the order of the inputs.
fn read_all(inputs: &[Input]) -> Vec<Result<DefinitionFiles, String>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut read = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(input) = inputs.get(at) else {
                return read;
            };
            read.push((at, input.read()));
        }
    };
    let others = thread::available_parallelism().map_or(0, |count| count.get() - 1);
    let others = others.min(inputs.len().saturating_sub(1));
    let mut read = thread::scope(|scope| {
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        // Without threads, this one reads everything.
        let others: Vec<_> = (0..others).map_while(spawn).collect();
        let mut read = work();
        for other in others {
            read.extend(
                other
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            );
        }
        read
    });
    read.sort_by_key(|(at, _)| *at);
    read.into_iter().map(|(_, read)| read).collect()
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

/// Decodes a document as a server decodes the body of a request; also returns the fields that it has twice.
fn decode(document: &str, is_json: bool) -> Result<(Value, Vec<String>), String> {
    let format = if is_json { Format::Json } else { Format::Yaml };
    let decoded = codec::Decoder::new(format).decode(document.as_bytes());
    // What begins like JSON may be YAML in its flow style.
    let decoded = if is_json && decoded.is_err() {
        codec::Decoder::new(Format::Yaml).decode(document.as_bytes())
    } else {
        decoded
    };
    let decoded = decoded.map_err(|error| error.to_string())?;
    Ok((decoded.value, decoded.strict))
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
        let old = DEFINITION.replace("/v1", "/v1beta1");
        check(
            &old,
            "a.yaml: foos.ex.io is of apiextensions.k8s.io/v1beta1, which",
        );
        let error = DefinitionFiles::read(&["/no/such/file"]).unwrap_err();
        assert!(error.starts_with("cannot read /no/such/file: "), "{error}");
    }

    #[test]
    fn the_last_of_two_equal_fields_is_read_with_a_warning() {
        let text = format!("{DEFINITION}---\n{DEFINITION}spec: 1\nspec: 2\n");
        let files = read(&text).unwrap();
        assert_eq!(
            files.duplicates,
            ["a.yaml, document 2: line 6: key \"spec\" already set in map"]
        );
        assert_eq!(files.definitions[1].document["spec"], 2);
        let json = r#"{"a": {"b": 1, "b": 2}}"#;
        assert_eq!(
            read(json).unwrap().duplicates,
            ["a.yaml: duplicate field \"a.b\""]
        );
    }

    #[test]
    fn many_files_are_read_in_their_order_up_to_the_first_error() {
        let folder = tempfile::tempdir().unwrap();
        let name = |at: usize| format!("foo{at:02}.ex.io");
        for at in 0..40 {
            let text = DEFINITION.replace("foos.ex.io", &name(at));
            fs::write(folder.path().join(format!("{at:02}.yaml")), text).unwrap();
        }
        let read = || DefinitionFiles::read(&[folder.path()]);
        let found = read().unwrap().definitions.into_iter();
        let found: Vec<String> = found.map(|file| file.name).collect();
        assert_eq!(found, (0..40).map(name).collect::<Vec<_>>());
        for at in [7, 30] {
            fs::write(folder.path().join(format!("{at:02}.yaml")), "a: [1\n").unwrap();
        }
        let error = read().unwrap_err();
        assert!(error.contains("07.yaml: "), "{error}");
    }

    #[test]
    fn json_and_flow_style_are_read() {
        let json = r#"{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "foos.ex.io"}}"#;
        assert_eq!(places(json).len(), 1);
        let flow = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}";
        assert_eq!(places(flow), [("a.yaml".to_owned(), String::new())]);
    }
}
