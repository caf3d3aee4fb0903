//! Checks that the schema of a version has the fields that the definition refers to.

use apiloom_meta::kind::{CellSource, DeletionRule, ResourceDef};
use apiloom_meta::schema::Schema;

use crate::problems::kind_problem;

/// The problems of all fields that a definition refers to.
pub(super) fn unfit_fields(def: &ResourceDef, schema: &Schema) -> Vec<String> {
    let mut problems = unknown_fields(def, schema);
    problems.extend(unfit_deletion(def, schema));
    problems
}

/// The problems of columns and selectable fields: unknown to the schema, or not comparable.
fn unknown_fields(def: &ResourceDef, schema: &Schema) -> Vec<String> {
    let columns = def
        .columns
        .iter()
        .filter(|_| !def.dialect.has_unknown_columns)
        .filter_map(|column| match &column.source {
            CellSource::Path(path) if !schema.has_path(path) => {
                Some((format!("column {:?}", column.name), path.to_string()))
            }
            CellSource::Query(query) if !schema.has_query(query) => {
                Some((format!("column {:?}", column.name), query.to_string()))
            }
            CellSource::Path(_) | CellSource::Query(_) | CellSource::With(_) => None,
        });
    let selectable = || def.selectable.iter().flat_map(|field| &field.paths);
    let unknown = selectable().filter(|path| !schema.has_path(path));
    let missing =
        columns.chain(unknown.map(|path| ("a selectable field".to_owned(), path.to_string())));
    let lines = missing.map(|(what, path)| {
        kind_problem(
            def,
            format_args!("{what} is at {path}, which the schema does not know"),
        )
    });
    let incomparable =
        selectable().filter(|path| schema.has_path(path) && !schema.is_comparable(path));
    let incomparable = incomparable.map(|path| {
        kind_problem(
            def,
            format_args!("a selectable field is at {path}, which is no string, integer or boolean"),
        )
    });
    lines.chain(incomparable).collect()
}

/// The problems of the fields that the deletion of a container writes: their type does not fit.
fn unfit_deletion(def: &ResourceDef, schema: &Schema) -> Vec<String> {
    let DeletionRule::Container { finalizers, phase } = &def.deletion else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    if !schema.is_string_list(finalizers) {
        let problem =
            format!("its own finalizers are at {finalizers}, which is no list of strings");
        problems.push(kind_problem(def, problem));
    }
    let terminating = DeletionRule::TERMINATING;
    if !schema.takes_text(phase, terminating) {
        let problem = format!("its phase is at {phase}, which cannot be {terminating:?}");
        problems.push(kind_problem(def, problem));
    }
    problems
}
