//! Whether the schema of a version has the fields that its definition names.

use apiloom_meta::kind::{CellSource, DeletionRule, ResourceDef};
use apiloom_meta::schema::Schema;

use crate::registry::located::of_kind;

/// A line for each field of a definition that is not what it has to be.
pub(super) fn unfit_fields(def: &ResourceDef, schema: &Schema) -> Vec<String> {
    let mut problems = unknown_fields(def, schema);
    problems.extend(unfit_deletion(def, schema));
    problems
}

/// One line for each column and selectable field that the schema does not know, or that cannot be compared.
fn unknown_fields(def: &ResourceDef, schema: &Schema) -> Vec<String> {
    let columns = def
        .columns
        .iter()
        .filter_map(|column| match &column.source {
            CellSource::Path(path) if !schema.has_path(path) => {
                Some((format!("column {:?}", column.name), path.to_string()))
            }
            CellSource::Query(query) if !schema.has_query(query) => {
                Some((format!("column {:?}", column.name), query.to_string()))
            }
            CellSource::Path(_) | CellSource::Query(_) | CellSource::With(_) => None,
        });
    let selectable = def.selectable.iter().filter(|path| !schema.has_path(path));
    let missing =
        columns.chain(selectable.map(|path| ("a selectable field".to_owned(), path.to_string())));
    let lines = missing.map(|(what, path)| {
        of_kind(
            def,
            format_args!("{what} is at {path}, which the schema does not know"),
        )
    });
    let incomparable = def
        .selectable
        .iter()
        .filter(|path| schema.has_path(path) && !schema.is_comparable(path));
    let incomparable = incomparable.map(|path| {
        of_kind(
            def,
            format_args!("a selectable field is at {path}, which is no string, integer or boolean"),
        )
    });
    lines.chain(incomparable).collect()
}

/// The fields that deletion of a container uses and that cannot hold what it writes there.
fn unfit_deletion(def: &ResourceDef, schema: &Schema) -> Vec<String> {
    let DeletionRule::Container { finalizers, phase } = &def.deletion else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    if !schema.is_string_list(finalizers) {
        let problem =
            format!("its own finalizers are at {finalizers}, which is no list of strings");
        problems.push(of_kind(def, problem));
    }
    let terminating = DeletionRule::TERMINATING;
    if !schema.takes_text(phase, terminating) {
        let problem = format!("its phase is at {phase}, which cannot be {terminating:?}");
        problems.push(of_kind(def, problem));
    }
    problems
}
