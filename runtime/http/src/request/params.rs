//! The `*Options` of the API, from the query or (for deletes) the body: decoding (400) and validation (422).

mod delete;

use apiloom_meta::field::is_printable;
use apiloom_meta::selector::{FieldSelector, LabelQuery};
use apiloom_meta::validation::{FIELD_MANAGER_MAX_BYTES, field_manager_errors};
use apiloom_meta::{ApiError, FieldError, FieldPath, GroupKind};
use apiloom_registry::{
    CreateOptions, FieldValidation, GetOptions, ListOptions, PatchOptions, VersionMatch,
};
pub(crate) use delete::{delete_options_of_body, delete_options_of_query};
use http::HeaderMap;
use http::header::USER_AGENT;

use super::query::Query;

fn invalid(kind: &str, errors: &[FieldError]) -> Result<(), ApiError> {
    if errors.is_empty() {
        Ok(())
    } else {
        Err(ApiError::invalid(
            &GroupKind::new("meta.k8s.io", kind),
            "",
            errors,
        ))
    }
}

/// Decodes `GetOptions`.
///
/// # Errors
/// BadRequest for `export`, which was removed from Kubernetes.
pub(crate) fn get_options(query: &Query) -> Result<GetOptions, ApiError> {
    if query.boolean("export") == Some(true) {
        return Err(ApiError::bad_request(
            "the export parameter, deprecated since v1.14, is no longer supported",
        ));
    }
    Ok(GetOptions {
        resource_version: query.text("resourceVersion").to_owned(),
    })
}

/// Verb of a request with list options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListUse {
    List,
    Watch,
}

/// Decodes `ListOptions`, with the API's defaults, and validates them.
///
/// # Errors
/// BadRequest for malformed values, Invalid for values that contradict each other.
pub(crate) fn list_options(query: &Query, list_use: ListUse) -> Result<ListOptions, ApiError> {
    let timeout_seconds = query
        .integer("timeoutSeconds")
        .map_err(ApiError::bad_request)?;
    let limit = query.integer("limit").map_err(ApiError::bad_request)?;
    let label_selector =
        LabelQuery::parse(query.text("labelSelector")).map_err(ApiError::bad_request)?;
    let field_selector =
        FieldSelector::parse(query.text("fieldSelector")).map_err(ApiError::bad_request)?;

    let resource_version = query.text("resourceVersion");
    let mut version_match = query.text("resourceVersionMatch");
    let mut send_initial_events = query.boolean("sendInitialEvents");
    // A watch without a resourceVersion begins with the existing objects, for clients older than sendInitialEvents.
    let from_nowhere = matches!(resource_version, "" | "0")
        && version_match.is_empty()
        && send_initial_events.is_none();
    if list_use == ListUse::Watch && from_nowhere {
        send_initial_events = Some(true);
        version_match = "NotOlderThan";
    }
    let form = ListForm {
        version_match,
        resource_version,
        has_continue: !query.text("continue").is_empty(),
        send_initial_events,
    };
    invalid(
        "ListOptions",
        &if list_use == ListUse::Watch {
            form.check_watch()
        } else {
            form.check_list()
        },
    )?;

    Ok(ListOptions {
        label_selector,
        field_selector,
        // A negative limit means no limit.
        limit: limit.and_then(|n| u64::try_from(n).ok()).unwrap_or(0),
        continue_token: query.text("continue").to_owned(),
        resource_version: resource_version.to_owned(),
        version_match: match version_match {
            "Exact" => Some(VersionMatch::Exact),
            "NotOlderThan" => Some(VersionMatch::NotOlderThan),
            _ => None,
        },
        send_initial_events,
        allow_watch_bookmarks: query.boolean("allowWatchBookmarks") == Some(true),
        timeout_seconds: timeout_seconds
            .and_then(|n| u64::try_from(n).ok())
            .filter(|n| *n > 0),
    })
}

/// The list options that restrict one another.
struct ListForm<'a> {
    version_match: &'a str,
    resource_version: &'a str,
    has_continue: bool,
    send_initial_events: Option<bool>,
}

impl ListForm<'_> {
    fn check_list(&self) -> Vec<FieldError> {
        let path = FieldPath::new("resourceVersionMatch");
        let mut errors = Vec::new();
        if !self.version_match.is_empty() {
            if self.resource_version.is_empty() {
                errors.push(FieldError::forbidden(
                    &path,
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                ));
            }
            errors.extend(self.check_continue(&path));
            if !matches!(self.version_match, "Exact" | "NotOlderThan") {
                errors.push(FieldError::not_supported(
                    &path,
                    self.version_match,
                    &["Exact", "NotOlderThan", ""],
                ));
            }
            if self.version_match == "Exact" && self.resource_version == "0" {
                let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                errors.push(FieldError::forbidden(&path, why));
            }
        }
        if self.send_initial_events.is_some() {
            let path = FieldPath::new("sendInitialEvents");
            errors.push(FieldError::forbidden(
                &path,
                "sendInitialEvents is forbidden for list",
            ));
        }
        errors
    }

    fn check_watch(&self) -> Vec<FieldError> {
        let path = FieldPath::new("resourceVersionMatch");
        let mut errors = Vec::new();
        if self.send_initial_events.is_some() && self.version_match != "NotOlderThan" {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            errors.push(FieldError::forbidden(&path, why));
        }
        if !self.version_match.is_empty() {
            if self.send_initial_events.is_none() {
                let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                errors.push(FieldError::forbidden(&path, why));
            }
            if self.version_match != "NotOlderThan" {
                errors.push(FieldError::not_supported(
                    &path,
                    self.version_match,
                    &["NotOlderThan"],
                ));
            }
            errors.extend(self.check_continue(&path));
        }
        errors
    }

    fn check_continue(&self, path: &FieldPath) -> Option<FieldError> {
        let why = "resourceVersionMatch is forbidden when continue is provided";
        self.has_continue.then(|| FieldError::forbidden(path, why))
    }
}

/// Verb of a request with write options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteUse {
    Create,
    Update,
    Patch,
    Apply,
}

/// Decodes `CreateOptions` or `UpdateOptions`, and what `PatchOptions` share with them.
///
/// # Errors
/// Invalid, with the name of the options.
pub(crate) fn write_options(
    query: &Query,
    headers: &HeaderMap,
    write_use: WriteUse,
) -> Result<CreateOptions, ApiError> {
    let mut errors = Vec::new();
    if write_use == WriteUse::Patch && query.boolean("force").is_some() {
        errors.push(FieldError::forbidden(
            &FieldPath::new("force"),
            "may not be specified for non-apply patch",
        ));
    }
    let field_manager = query.text("fieldManager");
    if write_use == WriteUse::Apply && field_manager.is_empty() {
        errors.push(FieldError::required(
            &FieldPath::new("fieldManager"),
            "is required for apply patch",
        ));
    }
    errors.extend(field_manager_errors(
        field_manager,
        &FieldPath::new("fieldManager"),
    ));
    let dry_run: Vec<&str> = query.all("dryRun").collect();
    errors.extend(check_dry_run(&dry_run));
    let field_validation = match query.text("fieldValidation") {
        "Ignore" => FieldValidation::Ignore,
        "" | "Warn" => FieldValidation::Warn,
        "Strict" => FieldValidation::Strict,
        other => {
            let path = FieldPath::new("fieldValidation");
            errors.push(FieldError::not_supported(
                &path,
                other,
                &["", "Ignore", "Strict", "Warn"],
            ));
            FieldValidation::Warn
        }
    };
    let kind = match write_use {
        WriteUse::Create => "CreateOptions",
        WriteUse::Update => "UpdateOptions",
        WriteUse::Patch | WriteUse::Apply => "PatchOptions",
    };
    invalid(kind, &errors)?;
    let field_manager = if field_manager.is_empty() {
        manager_of_agent(headers)
    } else {
        field_manager.to_owned()
    };
    Ok(CreateOptions {
        dry_run: !dry_run.is_empty(),
        field_validation,
        field_manager,
    })
}

/// Decodes `PatchOptions`, of a patch or of an apply.
///
/// # Errors
/// As [`write_options`].
pub(crate) fn patch_options(
    query: &Query,
    headers: &HeaderMap,
    write_use: WriteUse,
) -> Result<PatchOptions, ApiError> {
    let CreateOptions {
        dry_run,
        field_validation,
        field_manager,
    } = write_options(query, headers, write_use)?;
    Ok(PatchOptions {
        dry_run,
        field_validation,
        field_manager,
        force: query.boolean("force").unwrap_or(false),
    })
}

fn check_dry_run(values: &[&str]) -> Option<FieldError> {
    let fine = values.iter().all(|value| *value == "All");
    (!fine).then(|| FieldError::not_supported(&FieldPath::new("dryRun"), values, &["All"]))
}

/// The default field manager: the program's name in `User-Agent`.
fn manager_of_agent(headers: &HeaderMap) -> String {
    let agent = headers
        .get(USER_AGENT)
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
        .unwrap_or_default();
    let program = agent.split('/').next().unwrap_or_default();
    let mut name = String::new();
    for c in program.chars().filter(|c| is_printable(*c)) {
        if name.len() + c.len_utf8() > FIELD_MANAGER_MAX_BYTES {
            break;
        }
        name.push(c);
    }
    if name.is_empty() {
        "unknown".to_owned()
    } else {
        name
    }
}

/// Content of `row.object` in a Table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IncludeObject {
    Metadata,
    Object,
    None,
}

/// `includeObject` of `TableOptions`.
///
/// # Errors
/// BadRequest for an unknown value.
pub(crate) fn include_object(query: &Query) -> Result<IncludeObject, ApiError> {
    match query.text("includeObject") {
        "" | "Metadata" => Ok(IncludeObject::Metadata),
        "Object" => Ok(IncludeObject::Object),
        "None" => Ok(IncludeObject::None),
        other => {
            let rule = "must be 'Metadata', 'Object', 'None', or empty";
            let error = FieldError::invalid(&FieldPath::new("includeObject"), other, rule);
            Err(ApiError::bad_request(format!(
                "Unable to convert to Table as requested: {error}"
            )))
        }
    }
}

#[cfg(test)]
mod tests;
