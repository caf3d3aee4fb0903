//! The paths of a kind into its fields: of columns, selectable fields, the subresource scale and the deletion of containers.
//! Reports a field that a struct of the package does not have. Types of other crates are left to the compiler.

use apiloom_model::kind::{Column, ColumnSource, Deletion, FieldRef};
use apiloom_model::{Kind, Name};
use syn::{Fields, Item};

use super::Checker;
use crate::collect::Declaration;
use crate::problem::Problem;
use crate::source::{self, ModuleId};

impl<'a> Checker<'a> {
    /// Checks the paths of all kinds.
    pub(super) fn paths(&mut self) {
        for kind in &self.found.kinds {
            for path in paths_of(&kind.value) {
                if let Some((name, problem)) = self.missing(kind, path) {
                    let at = self.at(kind.module, name.span.into());
                    self.problems.push(problem.at(at));
                }
            }
        }
    }

    /// The first name of a path that no field has, if that can be told.
    fn missing<'n>(
        &self,
        kind: &'a Declaration<Kind>,
        path: &'n [Name],
    ) -> Option<(&'n Name, Problem)> {
        let (mut module, mut owner) = (kind.module, kind.value.root.name.text.clone());
        for name in path {
            let known = self.names_of(module, &owner)?;
            let Some(field) = self.field_of(module, &owner, &name.text) else {
                let problem = Problem::error(format!(
                    "cannot find the field `{}` of `{owner}` in this package",
                    name.text
                ));
                return Some((
                    name,
                    problem.help(format!("its fields are: {}", known.join(", "))),
                ));
            };
            (module, owner) = self.struct_of(&field)?;
        }
        None
    }

    /// The names of the fields of a struct of this package, if they are all there is.
    fn names_of(&self, module: ModuleId, owner: &str) -> Option<Vec<String>> {
        let mut items = self.krate.module(module).items.iter();
        let fields = items.find_map(|item| match item {
            Item::Struct(item) if item.ident == owner => Some(&item.fields),
            _ => None,
        })?;
        let Fields::Named(fields) = fields else {
            return None;
        };
        let is_flat = |field: &syn::Field| {
            let attributes = field.attrs.iter();
            attributes
                .filter_map(|attribute| attribute.meta.require_list().ok())
                .any(|list| {
                    list.tokens
                        .clone()
                        .into_iter()
                        .any(|token| token.to_string() == "flatten")
                })
        };
        if fields.named.iter().any(is_flat) {
            return None;
        }
        let names = fields.named.iter().filter_map(|field| field.ident.as_ref());
        Some(names.map(source::unraw).collect())
    }
}

/// The paths in Rust of a kind. Those in JSON are checked by the schema.
fn paths_of(kind: &Kind) -> impl Iterator<Item = &[Name]> {
    let columns = kind.columns.iter().filter_map(field_of_column);
    let selectable = kind.selectable.iter().flat_map(|field| &field.paths);
    let scales = kind
        .subresources
        .iter()
        .filter_map(|sub| sub.scale.as_ref());
    let scales = scales.flat_map(|scale| {
        [&scale.spec, &scale.status]
            .into_iter()
            .chain(&scale.selector)
    });
    let deletion = match &kind.deletion {
        Deletion::Container { finalizers, phase } => vec![finalizers, phase],
        Deletion::Object(_) => Vec::new(),
    };
    let all = columns.chain(selectable).chain(scales).chain(deletion);
    all.filter_map(|path| match path {
        FieldRef::Typed(names) => Some(names.as_slice()),
        FieldRef::Json(_) => None,
    })
}

fn field_of_column(column: &Column) -> Option<&FieldRef> {
    match &column.source {
        ColumnSource::Field(field) => Some(field),
        ColumnSource::Query(_) | ColumnSource::With(_) => None,
    }
}
