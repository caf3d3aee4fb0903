//! Compares generated definitions with those of the original APIs. `upstream.txt` of a port has the content of the
//! original definition, as lines in our own format, and the differences with their reasons.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use apiloom_meta::FieldPath;
use apiloom_meta::schema::structural;
use apiloom_tests::repository;
use serde_json::Value;

/// The definitions below a folder of packages, with their paths.
fn definitions(folder: &str) -> Vec<(PathBuf, Value)> {
    let folder = repository().join(folder);
    let packages = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let crds =
        packages.filter_map(|package| fs::read_dir(package.path().join("generated/crds")).ok());
    let files = crds.flatten().map(|file| file.unwrap().path());
    files
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let definition = serde_saphyr::from_str(&text).unwrap();
            (path, definition)
        })
        .collect()
}

fn versions(definition: &Value) -> &[Value] {
    definition["spec"]["versions"].as_array().unwrap()
}

#[test]
fn kubernetes_would_take_every_committed_definition() {
    let definitions = [definitions("examples"), definitions("tests/ports")].concat();
    assert!(definitions.len() > 2, "there are definitions");
    for (path, definition) in &definitions {
        let stored = |version: &&Value| version["storage"] == true;
        assert_eq!(
            versions(definition).iter().filter(stored).count(),
            1,
            "{}",
            path.display()
        );
        for version in versions(definition) {
            let schema = &version["schema"]["openAPIV3Schema"];
            let problems = structural::problems(schema, &FieldPath::new("schema"));
            assert!(problems.is_empty(), "{}: {problems:?}", path.display());
        }
    }
}

/// Compares the only definition of a port with its `upstream.txt`.
pub(crate) fn check(port: &str) {
    let folder = repository().join("tests/ports").join(port);
    let file = fs::read_dir(folder.join("generated/crds")).unwrap().next();
    let text = fs::read_to_string(file.unwrap().unwrap().path()).unwrap();
    let definition: Value = serde_saphyr::from_str(&text).unwrap();
    let mut ours = Lines::default();
    ours.definition(&definition);
    let table = fs::read_to_string(folder.join("upstream.txt")).unwrap();
    let mut theirs = BTreeSet::new();
    let mut lines = table
        .lines()
        .filter(|line| !line.starts_with("# "))
        .peekable();
    while let Some(line) = lines.next() {
        if let Some(path) = line.strip_prefix("below ") {
            ours.forget_below(reasoned(path));
        } else if let Some(differs) = lines.next_if(|next| next.starts_with("~ ")) {
            theirs.insert(reasoned(&differs[2..]).to_owned());
        } else {
            theirs.insert(line.to_owned());
        }
    }
    let missing: Vec<&String> = theirs.difference(&ours.0).collect();
    let surplus: Vec<&String> = ours.0.difference(&theirs).collect();
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "upstream.txt of {port} says\n{missing:#?}\nwhere ours says\n{surplus:#?}"
    );
}

/// A line without its reason.
fn reasoned(line: &str) -> &str {
    let (line, reason) = line.split_once(" # ").unwrap_or((line, ""));
    assert!(!reason.is_empty(), "no reason stands behind {line}");
    line
}

/// The content of a definition, a line for each name, column and field.
#[derive(Default)]
struct Lines(BTreeSet<String>);

impl Lines {
    fn add(&mut self, words: impl IntoIterator<Item = String>) {
        let words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
        self.0.insert(words.join(" "));
    }

    fn forget_below(&mut self, path: &str) {
        let is_below = |line: &str| {
            let rest = line.strip_prefix(path);
            rest.is_some_and(|rest| rest.starts_with(['.', '[', '{']))
        };
        self.0.retain(|line| !is_below(line));
    }

    fn definition(&mut self, definition: &Value) {
        let (spec, names) = (&definition["spec"], &definition["spec"]["names"]);
        let version = &versions(definition)[0];
        let words = [
            "names".to_owned(),
            text(&names["plural"]),
            text(&names["singular"]),
            text(&names["kind"]),
            text(&names["listKind"]),
            joined(&names["shortNames"]),
            joined(&names["categories"]),
            text(&spec["scope"]),
        ];
        self.add(words);
        for column in items(&version["additionalPrinterColumns"]) {
            let path = text(&column["jsonPath"]);
            self.add([
                "column".to_owned(),
                text(&column["name"]),
                text(&column["type"]),
                path,
                said("priority", &column["priority"]),
            ]);
        }
        for field in items(&version["selectableFields"]) {
            self.add(["selectable".to_owned(), text(&field["jsonPath"])]);
        }
        for name in version["subresources"]
            .as_object()
            .into_iter()
            .flat_map(|names| names.keys())
        {
            self.add(["subresource".to_owned(), name.clone()]);
        }
        self.fields(&version["schema"]["openAPIV3Schema"], "");
    }

    fn fields(&mut self, schema: &Value, path: &str) {
        let required = items(&schema["required"]);
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let at = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            let mark = if required.iter().any(|required| required == name) {
                "!"
            } else {
                ""
            };
            self.value(field, &at, mark);
        }
        for (below, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
            if schema[below].is_object() {
                self.value(&schema[below], &format!("{path}{mark}"), "");
            }
        }
    }

    fn value(&mut self, schema: &Value, path: &str, mark: &str) {
        let mut kind = schema["type"].as_str().unwrap_or("any").to_owned();
        if let Some(format) = schema["format"].as_str() {
            kind = format!("{kind}:{format}");
        }
        let mut words = vec![format!("{path}{mark}"), kind];
        for (name, least, most) in [
            ("range", "minimum", "maximum"),
            ("len", "minLength", "maxLength"),
            ("items", "minItems", "maxItems"),
            ("props", "minProperties", "maxProperties"),
        ] {
            let range = format!("{}..{}", text(&schema[least]), text(&schema[most]));
            words.extend((range != "..").then(|| format!("{name}={range}")));
        }
        let keys = joined(&schema["x-kubernetes-list-map-keys"]);
        let keys = if keys.is_empty() {
            keys
        } else {
            format!("({keys})")
        };
        if let Some(list) = schema["x-kubernetes-list-type"].as_str() {
            words.push(format!("list={list}{keys}"));
        }
        words.push(said("map", &schema["x-kubernetes-map-type"]));
        for flag in [
            "preserve-unknown-fields",
            "int-or-string",
            "embedded-resource",
        ] {
            words.extend((schema[format!("x-kubernetes-{flag}")] == true).then(|| flag.to_owned()));
        }
        words.extend((schema["nullable"] == true).then(|| "nullable".to_owned()));
        for name in ["enum", "default"] {
            words.extend(schema.get(name).map(|value| format!("{name}={value}")));
        }
        words.push(said("pattern", &schema["pattern"]));
        self.add(words);
        self.fields(schema, path);
    }
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

/// A scalar as text; empty if there is none.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn joined(list: &Value) -> String {
    items(list).iter().map(text).collect::<Vec<_>>().join(",")
}

fn said(name: &str, value: &Value) -> String {
    match text(value) {
        nothing if nothing.is_empty() => nothing,
        value => format!("{name}={value}"),
    }
}
