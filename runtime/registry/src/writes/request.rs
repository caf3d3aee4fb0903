//! The request of a write, as a value that all its steps share.

use crate::options::{CreateOptions, FieldValidation, PatchOptions, RequestContext};
use crate::rules::admission::Operation;

/// The manager of a program that names none, as of a client without a user agent.
const NO_MANAGER: &str = "unknown";

/// A request to write an object or a subresource: where, by whom, and with which options.
#[derive(Clone, Copy, Debug)]
pub struct WriteRequest<'a> {
    pub(crate) ctx: &'a RequestContext,
    pub(crate) namespace: Option<&'a str>,
    /// Empty on create if the name is not generated yet.
    pub(crate) name: &'a str,
    /// Empty for the object itself.
    pub(crate) subresource: &'a str,
    /// The name of the field manager, which owns the fields that the write changes.
    pub(crate) manager: &'a str,
    pub(crate) dry_run: bool,
    /// How unknown and duplicate fields of a patch or of an applied document are handled.
    pub(crate) validation: FieldValidation,
    /// Whether an apply takes fields from other managers.
    pub(crate) force: bool,
    /// The operation for admission, if the objects of the request do not tell it.
    pub(crate) operation: Option<Operation>,
}

impl<'a> WriteRequest<'a> {
    /// A request for the object of this name, with the default options. `namespace` is that of the URL, `None` for kinds of the
    /// cluster.
    pub fn new(ctx: &'a RequestContext, namespace: Option<&'a str>, name: &'a str) -> Self {
        Self {
            ctx,
            namespace,
            name,
            subresource: "",
            manager: NO_MANAGER,
            dry_run: false,
            validation: FieldValidation::default(),
            force: false,
            operation: None,
        }
    }

    /// The same for a subresource of the object; an empty name is the object itself.
    #[must_use]
    pub fn at(self, subresource: &'a str) -> Self {
        Self {
            subresource,
            ..self
        }
    }

    /// The same with these options.
    #[must_use]
    pub fn with(self, options: impl Into<WriteOptions<'a>>) -> Self {
        let WriteOptions {
            manager,
            dry_run,
            validation,
            force,
        } = options.into();
        Self {
            manager: Some(manager)
                .filter(|name| !name.is_empty())
                .unwrap_or(NO_MANAGER),
            dry_run,
            validation,
            force,
            ..self
        }
    }

    /// The same as a dry run, or not.
    pub(crate) fn dry(self, dry_run: bool) -> Self {
        Self { dry_run, ..self }
    }

    /// The same with an operation that the objects do not tell.
    pub(crate) fn admitted_as(self, operation: Operation) -> Self {
        Self {
            operation: Some(operation),
            ..self
        }
    }
}

/// The options of a create, an update or a patch.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions<'a> {
    manager: &'a str,
    dry_run: bool,
    validation: FieldValidation,
    force: bool,
}

impl<'a> From<&'a CreateOptions> for WriteOptions<'a> {
    fn from(options: &'a CreateOptions) -> Self {
        Self {
            manager: &options.field_manager,
            dry_run: options.dry_run,
            validation: options.field_validation,
            force: false,
        }
    }
}

impl<'a> From<&'a PatchOptions> for WriteOptions<'a> {
    fn from(options: &'a PatchOptions) -> Self {
        Self {
            manager: &options.field_manager,
            dry_run: options.dry_run,
            validation: options.field_validation,
            force: options.force,
        }
    }
}
