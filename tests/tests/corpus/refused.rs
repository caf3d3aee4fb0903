//! The definitions that kube-apiserver refuses. `tests/corpus/refused.txt` has them with the causes; with UPDATE=1 the test
//! writes it.

use std::fmt::Write as _;
use std::fs;

use apiloom_meta::schema::structural;
use apiloom_meta::{FieldError, FieldPath};
use apiloom_tests::repository;

use crate::{DEFINITIONS, Definition};

pub(crate) const TABLE: &str = "tests/corpus/refused.txt";

/// What kube-apiserver finds in the schemas of a definition. One that all versions have is reported once.
fn refusals(definition: &Definition) -> Vec<FieldError> {
    let spec = FieldPath::new("spec");
    let versions = definition.versions();
    let shared = versions
        .iter()
        .all(|version| version["schema"] == versions[0]["schema"]);
    let checked = if shared { &versions[..1] } else { versions };
    let refusals = checked.iter().enumerate().flat_map(|(index, version)| {
        let path = if shared {
            spec.child("validation")
        } else {
            spec.child("versions").index(index).child("schema")
        };
        let has_status = version["subresources"].get("status").is_some();
        let schema = &version["schema"]["openAPIV3Schema"];
        structural::refusals(schema, &path.child("openAPIV3Schema"), has_status)
    });
    refusals.collect()
}

#[test]
fn what_kubernetes_refuses_is_listed() {
    let mut refused = String::new();
    for definition in &*DEFINITIONS {
        let refusals = refusals(definition);
        if !refusals.is_empty() {
            writeln!(refused, "{}", definition.file).unwrap();
        }
        for refusal in refusals {
            writeln!(refused, "    {refusal}").unwrap();
        }
    }
    let path = repository().join(TABLE);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &refused).unwrap();
    }
    let committed = fs::read_to_string(path).unwrap_or_default();
    assert!(refused == committed, "{TABLE} is not\n{refused}");
}
