//! The view of `apply.rs`: the builders of apply configurations, by group and version.

use serde::Serialize;

use super::clientset::version_method;
use super::{api_version, snake_case};
use crate::model::{Builder, BuilderRole, Configurations, Model};

/// `apply.rs`.
#[derive(Debug, Serialize)]
pub(crate) struct ApplyView {
    pub(crate) package: String,
    pub(crate) modules: Vec<ApplyModule>,
}

/// The builders of one group and version.
#[derive(Debug, Serialize)]
pub(crate) struct ApplyModule {
    /// `v1alpha1`; with several groups `wardle_v1alpha1`.
    pub(crate) name: String,
    /// `wardle.example.com/v1alpha1`.
    pub(crate) api_version: String,
    pub(crate) builders: Vec<BuilderView>,
}

/// One builder.
#[derive(Debug, Serialize)]
pub(crate) struct BuilderView {
    /// `kind Flunder(namespaced, status) of crate::v1alpha1::Flunder:`.
    pub(crate) head: String,
    /// The fields: `reference "reference": text,`. The last one ends with a semicolon.
    pub(crate) lines: Vec<String>,
}

impl ApplyView {
    pub(crate) fn new(model: &Model) -> ApplyView {
        let modules = model.configurations.iter();
        ApplyView {
            package: model.package.clone(),
            modules: modules.map(|module| of_version(model, module)).collect(),
        }
    }
}

fn of_version(model: &Model, configurations: &Configurations) -> ApplyModule {
    let mut groups = model.groups.iter();
    let group = groups.find(|group| group.name == configurations.group);
    let version = &configurations.version;
    let short = snake_case(version);
    ApplyModule {
        name: match group {
            Some(group) if model.groups.len() > 1 => version_method(model, group, version),
            _ => short,
        },
        api_version: group.map_or_else(|| version.clone(), |group| api_version(group, version)),
        builders: configurations.builders.iter().map(view).collect(),
    }
}

fn view(builder: &Builder) -> BuilderView {
    let name = &builder.name;
    let head = match &builder.role {
        BuilderRole::Kind {
            rust_type,
            namespaced,
            has_status,
        } => {
            let scope = if *namespaced { "namespaced" } else { "cluster" };
            let status = if *has_status { ", status" } else { "" };
            format!("kind {name}({scope}{status}) of {rust_type}")
        }
        BuilderRole::Part => format!("part {name}"),
        BuilderRole::Union => format!("union {name}"),
    };
    let mut lines = Vec::new();
    let last = builder.fields.len().saturating_sub(1);
    for (index, field) in builder.fields.iter().enumerate() {
        let conditions = field.conditions.iter();
        // As rustfmt writes attributes.
        let conditions = conditions.map(|text| text.replace("# [", "#[").replace(" (", "(") + " ");
        let conditions: String = conditions.collect();
        let end = if index == last { ';' } else { ',' };
        let (name, json) = (&field.name, &field.json_name);
        lines.push(format!("{conditions}{name} {json:?}: {}{end}", field.form));
    }
    let end = if lines.is_empty() { ": ;" } else { ":" };
    BuilderView {
        head: head + end,
        lines,
    }
}
