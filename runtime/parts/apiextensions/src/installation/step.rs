//! The steps of an installation, for one definition: the check and the apply.

use apiloom_kinds::apiextensions::rules::take_schemas;
use apiloom_kinds::definition_files::DefinitionFile;
use apiloom_meta::{ApiError, Object};
use apiloom_registry::{
    CreateOptions, Endpoint, FieldValidation, PatchOptions, RequestContext, WriteRequest,
};

/// The manager of the fields that are applied.
const MANAGER: &str = "definition-installer";

/// What is done with each definition.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A create as a dry run.
    Check,
    /// A server-side apply, which takes fields from other managers: what the files say holds after a restart too.
    Apply,
}

impl Step {
    /// Runs the step.
    ///
    /// # Errors
    /// A line for each problem.
    pub(super) async fn run(
        self,
        endpoint: &Endpoint,
        file: &DefinitionFile,
    ) -> Result<Object, Vec<String>> {
        let ctx = RequestContext::default();
        let written = match self {
            Self::Check => check(&ctx, endpoint, file).await,
            Self::Apply => apply(&ctx, endpoint, file).await,
        };
        // The same are found by both steps.
        let warnings = ctx.take_warnings().into_iter();
        for warning in warnings.filter(|_| self == Self::Check) {
            tracing::warn!("{}", problem(file, &warning));
        }
        written.map_err(|error| lines_of(&error))
    }
}

async fn check(
    ctx: &RequestContext,
    endpoint: &Endpoint,
    file: &DefinitionFile,
) -> Result<Object, ApiError> {
    let writes = endpoint.writes();
    let object = writes.decode_tree(ctx, file.document.clone(), FieldValidation::Warn)?;
    let options = CreateOptions {
        dry_run: true,
        field_manager: MANAGER.to_owned(),
        ..CreateOptions::default()
    };
    let mut created = writes.create(ctx, None, object, &options).await?.object;
    // They are nearly all of it: only its names are looked at after the check.
    take_schemas(&mut created);
    Ok(created)
}

async fn apply(
    ctx: &RequestContext,
    endpoint: &Endpoint,
    file: &DefinitionFile,
) -> Result<Object, ApiError> {
    let document = Object::from_value(file.document.clone()).unwrap_or_default();
    let document = document.into();
    let options = PatchOptions {
        field_manager: MANAGER.to_owned(),
        force: true,
        ..PatchOptions::default()
    };
    let request = WriteRequest::new(ctx, None, &file.name).with(&options);
    let (applied, _) = endpoint.writes().apply(request, &document).await?;
    Ok(applied.object)
}

/// The lines of an error: one for each field, or its message.
fn lines_of(error: &ApiError) -> Vec<String> {
    let causes = error.details.iter().flat_map(|details| &details.causes);
    let lines: Vec<String> = causes
        .map(|cause| format!("{}: {}", cause.field, cause.message))
        .collect();
    if lines.is_empty() {
        vec![error.message.clone()]
    } else {
        lines
    }
}

/// A problem of a definition, with its place.
pub(super) fn problem(file: &DefinitionFile, text: &str) -> String {
    let place = &file.place;
    if file.name.is_empty() {
        format!("{place}: {text}")
    } else {
        format!("{place}: {}: {text}", file.name)
    }
}
