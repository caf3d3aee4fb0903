//! The command: reads what is to be imported, and writes a package with its types.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::definition::Definition;
use super::input::{Cluster, Input};
use super::names;
use super::place::Place;
use super::prepared::Prepared;
use super::sharing;
use super::versions::{self, Imported, module_of_kind, priority};
use crate::console::{Console, Failure};
use crate::render::Renderer;

/// Flags of `import`.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The package's folder, which must be new or empty
    path: PathBuf,
    /// CustomResourceDefinitions, or documents of OpenAPI v3: files of YAML or JSON, folders of such files, or `-` for standard input
    #[arg(required_unless_present = "from_cluster")]
    sources: Vec<PathBuf>,
    /// Import the definitions of a running server
    #[arg(long)]
    from_cluster: bool,
    #[command(flatten)]
    cluster: Cluster,
    /// The package's name; that of the folder unless given
    #[arg(long)]
    name: Option<String>,
    /// A clone of apiloom to depend on; without it, the clone around the folder or the one that this command was built from,
    /// else the release of this command
    #[arg(long, value_name = "DIR")]
    apiloom_path: Option<PathBuf>,
    /// Fail, and write nothing, if the types do not say all that the definitions say
    #[arg(long)]
    strict: bool,
}

/// The view of the files around the modules.
#[derive(Debug, Serialize)]
pub(crate) struct PackageView {
    name: String,
    /// The value of the dependency on apiloom, such as `version = "1.0"`.
    apiloom: String,
    is_alone: bool,
    has_json: bool,
    /// The groups, with their modules; a single one is that of the crate itself.
    groups: Vec<GroupView>,
    has_one_group: bool,
}

/// A group.
#[derive(Debug, Serialize)]
struct GroupView {
    name: String,
    module: String,
    /// The versions, preferred first.
    versions: Vec<VersionView>,
    version_names: String,
    /// The release that deprecations compare with.
    release: String,
}

#[derive(Debug, Serialize)]
struct VersionView {
    name: String,
    group: String,
    kinds: Vec<KindView>,
}

#[derive(Debug, Serialize)]
struct KindView {
    name: String,
    module: String,
}

#[cfg(test)]
impl PackageView {
    /// A view for tests of the templates.
    pub(crate) fn example(is_full: bool) -> Self {
        let kinds = ["Door", "Lock"].map(|name| KindView {
            name: name.to_owned(),
            module: name.to_ascii_lowercase(),
        });
        let version = VersionView {
            name: "v1".to_owned(),
            group: "example.com".to_owned(),
            kinds: kinds.into_iter().take(1 + usize::from(is_full)).collect(),
        };
        let group = GroupView {
            name: "example.com".to_owned(),
            module: "example".to_owned(),
            versions: vec![version],
            version_names: "v1".to_owned(),
            release: String::new(),
        };
        Self {
            name: "doors".to_owned(),
            apiloom: "version = \"1.0\"".to_owned(),
            is_alone: is_full,
            has_json: is_full,
            groups: vec![group],
            has_one_group: !is_full,
        }
    }
}

/// Runs the command.
pub(crate) fn run(flags: &Import, console: &mut Console<'_>) -> Result<(), Failure> {
    let mut input = Input::read(&flags.sources)?;
    if flags.from_cluster {
        input.add_cluster(&flags.cluster)?;
    }
    for duplicate in &input.duplicates {
        console.note(format_args!("warning: {duplicate}"));
    }
    let place = Place::new(
        &flags.path,
        flags.name.as_deref(),
        flags.apiloom_path.as_deref(),
    )?;
    let written = write(&input.definitions, &place)?;
    for line in &written.lost {
        console.note(format_args!("warning: {line}"));
    }
    if flags.strict && !written.lost.is_empty() {
        let what = match written.lost.len() {
            1 => "1 part of the definitions is lost".to_owned(),
            count => format!("{count} parts of the definitions are lost"),
        };
        let complaint =
            format!("{what}; nothing was written\n  help: leave --strict out to import the rest");
        return Err(complaint.into());
    }
    place.write(&written.files)?;
    place.generate(console)?;
    let (path, kinds) = (flags.path.display(), written.kinds);
    let plural = if kinds == 1 { "kind" } else { "kinds" };
    console.say(format_args!(
        "{path}: {kinds} {plural}, in src\n  generate the rest: apiloom generate {path}\n  serve it:          apiloom run {path}"
    ));
    match input.others {
        0 => {}
        1 => console.note("note: 1 document is no definition"),
        count => console.note(format_args!("note: {count} documents are no definitions")),
    }
    Ok(())
}

/// The files of a package, with what is lost in them.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) files: Vec<(String, String)>,
    pub(crate) lost: Vec<String>,
    pub(crate) kinds: usize,
}

/// Makes the files of a package.
///
/// # Errors
/// A definition of which no types can be made.
pub(crate) fn write(definitions: &[Definition], place: &Place) -> Result<Written, String> {
    check(definitions)?;
    let renderer = Renderer::new(String::new()).map_err(|error| error.to_string())?;
    let mut groups: BTreeMap<&str, Vec<&Definition>> = BTreeMap::new();
    for definition in definitions {
        groups
            .entry(&definition.group)
            .or_default()
            .push(definition);
    }
    let has_one_group = groups.len() == 1;
    let (mut files, mut lost) = (Vec::new(), Vec::new());
    let (mut views, mut modules_of_groups, mut has_json) = (Vec::new(), Vec::new(), false);
    for (group, definitions) in &groups {
        let module = names::free(module_of_group(group), &modules_of_groups);
        modules_of_groups.push(module.clone());
        let (folder, path) = if has_one_group {
            ("src".to_owned(), "crate".to_owned())
        } else {
            (format!("src/{module}"), format!("crate::{module}"))
        };
        let kinds: Vec<String> = definitions
            .iter()
            .map(|definition| module_of_kind(&definition.kind))
            .collect();
        let shared_module = names::free("shared".to_owned(), &kinds);
        let prepared: Vec<Prepared> = definitions
            .iter()
            .map(|definition| Prepared::new(definition))
            .collect();
        let of_shared = |version: &str| format!("{path}::{version}::{shared_module}");
        let shared = sharing::find(group, &prepared, &of_shared, &renderer)?;
        let mut versions: BTreeMap<&str, Vec<KindView>> = BTreeMap::new();
        for (version, shared) in &shared {
            files.push((
                format!("{folder}/{version}/{shared_module}.rs"),
                shared.text.clone(),
            ));
            has_json |= shared.uses_json;
            versions.entry(version).or_default().push(KindView {
                name: String::new(),
                module: shared_module.clone(),
            });
        }
        for (definition, prepared) in definitions.iter().zip(&prepared) {
            let kind = module_of_kind(&definition.kind);
            let of_version = |version: &str| format!("{path}::{version}::{kind}");
            let Imported {
                modules,
                lost: lines,
                has_json: uses_json,
            } = versions::write(prepared, &of_version, &shared, &renderer)?;
            lost.extend(
                lines
                    .into_iter()
                    .map(|line| format!("{}: {line}", definition.name())),
            );
            has_json |= uses_json;
            for module in modules {
                files.push((
                    format!("{folder}/{}/{kind}.rs", module.version),
                    module.text,
                ));
                let view = KindView {
                    name: definition.kind.clone(),
                    module: kind.clone(),
                };
                let version = definition
                    .versions
                    .iter()
                    .find(|version| version.name == module.version);
                versions
                    .entry(version.map_or("", |version| &version.name))
                    .or_default()
                    .push(view);
            }
        }
        let is_deprecated = definitions.iter().any(|definition| {
            definition
                .versions
                .iter()
                .any(|version| version.is_deprecated)
        });
        let mut versions: Vec<VersionView> = versions
            .into_iter()
            .map(|(name, kinds)| VersionView {
                name: name.to_owned(),
                group: (*group).to_owned(),
                kinds,
            })
            .collect();
        for version in &mut versions {
            version.kinds.sort_by(|a, b| a.module.cmp(&b.module));
        }
        versions.sort_by_key(|version| std::cmp::Reverse(priority(&version.name)));
        let names: Vec<&str> = versions
            .iter()
            .map(|version| version.name.as_str())
            .collect();
        views.push(GroupView {
            name: (*group).to_owned(),
            module,
            version_names: names.join(", "),
            release: if is_deprecated {
                ", release = \"1.0\"".to_owned()
            } else {
                String::new()
            },
            versions,
        });
    }
    let view = PackageView {
        name: place.name.clone(),
        apiloom: place.dependency(),
        is_alone: place.is_alone(),
        has_json,
        groups: views,
        has_one_group,
    };
    let render = |template: &str| {
        renderer
            .plain(template, &view)
            .map_err(|error| error.to_string())
    };
    files.push(("Cargo.toml".to_owned(), render("import/Cargo.toml.tera")?));
    files.push(("src/lib.rs".to_owned(), render("import/lib.rs.tera")?));
    for group in &view.groups {
        let folder = if has_one_group {
            "src".to_owned()
        } else {
            format!("src/{}", group.module)
        };
        if !has_one_group {
            let text = renderer
                .plain("import/group.rs.tera", group)
                .map_err(|error| error.to_string())?;
            files.push((format!("{folder}.rs"), text));
        }
        for version in &group.versions {
            let text = renderer
                .plain("import/version.rs.tera", version)
                .map_err(|error| error.to_string())?;
            files.push((format!("{folder}/{}.rs", version.name), text));
        }
    }
    Ok(Written {
        files,
        lost,
        kinds: definitions.len(),
    })
}

/// Refuses definitions that cannot stand in one package.
fn check(definitions: &[Definition]) -> Result<(), String> {
    if definitions.is_empty() {
        return Err("there is neither a CustomResourceDefinition nor a document of OpenAPI v3 in what was read".to_owned());
    }
    let mut seen: BTreeMap<(&str, String), &Definition> = BTreeMap::new();
    for definition in definitions {
        for version in &definition.versions {
            if syn::parse_str::<syn::Ident>(&version.name).is_err() {
                return Err(format!(
                    "{}: {}: version {:?} cannot be the name of a module",
                    definition.source,
                    definition.name(),
                    version.name
                ));
            }
        }
        let key = (definition.group.as_str(), module_of_kind(&definition.kind));
        if let Some(first) = seen.insert(key, definition) {
            return Err(format!(
                "{} is in {} and in {}\n  help: import one of them",
                definition.name(),
                first.source,
                definition.source
            ));
        }
    }
    Ok(())
}

/// The module of a group: its first label, such as `gateway` of `gateway.networking.k8s.io`.
fn module_of_group(group: &str) -> String {
    if group.is_empty() {
        return "core_group".to_owned();
    }
    names::module(group.split('.').next().unwrap_or(group))
}
