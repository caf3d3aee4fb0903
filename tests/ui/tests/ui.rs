//! Every compile error of the macros, as the user sees it.
//!
//! The expected texts are in `cases/*.stderr`; `TRYBUILD=overwrite cargo test -p apiloom-ui-tests` rewrites them.

use std::path::Path;

use apiloom_model::DiagnosticId;

fn stem(id: DiagnosticId) -> String {
    format!("{}-{}", id.code().to_lowercase(), id.name())
}

#[test]
fn every_diagnostic_has_a_ui_test_that_shows_it() {
    for id in DiagnosticId::ALL {
        let file = Path::new("cases").join(stem(*id)).with_extension("stderr");
        let text = std::fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert!(
            text.contains(&format!("[{}]", id.code())),
            "{} does not show [{}]",
            file.display(),
            id.code()
        );
    }
}

#[test]
fn numbers_and_names_of_diagnostics_are_unique() {
    let mut codes: Vec<&str> = DiagnosticId::ALL
        .iter()
        .flat_map(|id| [id.code(), id.name()])
        .collect();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), 2 * DiagnosticId::ALL.len());
}

#[test]
fn errors_are_shown_at_the_users_token() {
    trybuild::TestCases::new().compile_fail("cases/*.rs");
}
