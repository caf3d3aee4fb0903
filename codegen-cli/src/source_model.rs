//! From a package's source to its model; all problems of the package are shown together.

use std::path::Path;

use crate::checks;
use crate::collect;
use crate::configurations;
use crate::console::{Console, Failure};
use crate::model::Model;
use crate::package::Package;
use crate::problem::{self, Problem};
use crate::source::Crate;

/// Reads, collects and checks. Returns the model with the text of its warnings; the error is the text to show.
fn load(package: &Package, color: bool) -> Result<(Model, String), String> {
    let krate = Crate::load(&package.root, package.externs.clone(), &display_name);
    let mut found = collect::collect(&krate);
    // A module that could not be read may contain items that seem to be missing.
    found.incomplete |= !krate.problems.is_empty();
    let checked = checks::check(&krate, &found, package);
    let mut problems: Vec<Problem> = krate
        .problems
        .iter()
        .chain(&found.problems)
        .cloned()
        .collect();
    let has_problems = !problems.is_empty();
    problems.extend(found.warnings.iter().cloned());
    match checked {
        Ok(mut model) if !has_problems => {
            if package.clients || package.has_client_crate {
                let (configurations, warnings) = configurations::collect(&krate, &found, &model);
                model.configurations = configurations;
                problems.extend(warnings);
            }
            Ok((model, report(&problems, &krate, color)))
        }
        Ok(_) => Err(report(&problems, &krate, color)),
        Err(more) => {
            problems.extend(more);
            Err(report(&problems, &krate, color))
        }
    }
}

fn report(problems: &[Problem], krate: &Crate, color: bool) -> String {
    problem::render(problems, &krate.files, color)
}

fn display_name(path: &Path) -> String {
    path.display().to_string().replace('\\', "/")
}

/// Loads the model, or prints the problems.
pub(crate) fn load_or_tell(package: &Package, console: &mut Console<'_>) -> Result<Model, Failure> {
    match load(package, console.terminal) {
        Ok((model, warnings)) => {
            if !warnings.is_empty() {
                console.note(warnings.trim_end());
            }
            Ok(model)
        }
        Err(report) => {
            console.note(report.trim_end());
            Err(Failure::Told)
        }
    }
}

/// `apiloom model`.
pub(crate) fn print(path: &Path, console: &mut Console<'_>) -> Result<(), Failure> {
    let package = Package::locate(path)?;
    let model = load_or_tell(&package, console)?;
    let text = serde_json::to_string_pretty(&model).map_err(|error| error.to_string())?;
    console.say(text);
    Ok(())
}
