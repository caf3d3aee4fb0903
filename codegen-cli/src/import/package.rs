//! The command: reads what is to be imported, and writes a package with its types.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::definition::Definition;
use super::input::{Cluster, Input};
use super::names;
use super::place::Place;
use super::prepared::PreparedKind;
use super::sharing;
use super::versions::{self, KindModules, module_of_kind, priority};
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
    let place = Place::new(
        &flags.path,
        flags.name.as_deref(),
        flags.apiloom_path.as_deref(),
    )?;
    let all = input.definitions.len() + input.failures.len();
    let written =
        write(&input.definitions, input.failures, &place).map_err(|error| shown(&error))?;
    for line in input
        .duplicates
        .iter()
        .chain(&written.lost)
        .chain(&written.notes)
    {
        console.note(format_args!("warning: {}", shown(line)));
    }
    for line in &written.failures {
        console.note(format_args!("error: {}", shown(line)));
    }
    if flags.strict && !(written.lost.is_empty() && written.failures.is_empty()) {
        return Err(refusal(written.lost.len() + written.failures.len()).into());
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
    match written.failures.len() {
        0 => Ok(()),
        count => Err(format!(
            "{count} of {all} inputs failed; the package has the kinds of the others"
        )
        .into()),
    }
}

/// Why `--strict` writes nothing.
fn refusal(count: usize) -> String {
    let what = match count {
        1 => "1 part of the definitions is lost".to_owned(),
        count => format!("{count} parts of the definitions are lost"),
    };
    format!("{what}; nothing was written\n  help: leave --strict out to import the rest")
}

/// A text of others for a terminal, which would read control characters as commands.
fn shown(text: &str) -> String {
    let is_command = |c: char| c.is_control() && c != '\n';
    text.chars()
        .map(|c| {
            if is_command(c) {
                char::REPLACEMENT_CHARACTER
            } else {
                c
            }
        })
        .collect()
}

/// The files of a package, with what is lost in them.
#[derive(Debug, Default)]
pub(crate) struct PackageFiles {
    pub(crate) files: Vec<(String, String)>,
    pub(crate) lost: Vec<String>,
    /// What a reader of the package needs to know besides.
    pub(crate) notes: Vec<String>,
    /// Why definitions are left out, with their files.
    pub(crate) failures: Vec<String>,
    pub(crate) kinds: usize,
}

/// Makes the files of a package. Definitions of which no types can be made are left out, and join the failures so far.
///
/// # Errors
/// If there is no definition, or none of which types can be made, or one that is there twice.
pub(crate) fn write(
    definitions: &[Definition],
    mut failures: Vec<String>,
    place: &Place,
) -> Result<PackageFiles, String> {
    if definitions.is_empty() && failures.is_empty() {
        return Err("there is neither a CustomResourceDefinition nor a document of OpenAPI v3 in what was read".to_owned());
    }
    let mut left: Vec<&Definition> = definitions.iter().collect();
    check_twins(&left)?;
    left.retain(|definition| match definition.check_names() {
        Ok(()) => true,
        Err(reason) => {
            failures.push(format!(
                "{}: {}: {reason}",
                definition.source,
                definition.name()
            ));
            false
        }
    });
    loop {
        if left.is_empty() {
            return Err(failures.join("\nerror: "));
        }
        let mut failed = Vec::new();
        let written = attempt(&left, place, &mut failed)?;
        if failed.is_empty() {
            return Ok(PackageFiles {
                failures,
                ..written
            });
        }
        // What the others share depends on which they are.
        left.retain(|definition| !failed.iter().any(|(name, _)| *name == definition.name()));
        failures.extend(failed.into_iter().map(|(_, reason)| reason));
    }
}

/// Makes the files of a package with all definitions; those of which no types can be made are added to `failed`, by name.
fn attempt(
    definitions: &[&Definition],
    place: &Place,
    failed: &mut Vec<(String, String)>,
) -> Result<PackageFiles, String> {
    let renderer = Renderer::new(String::new()).map_err(|error| error.to_string())?;
    let mut groups: BTreeMap<&str, Vec<&Definition>> = BTreeMap::new();
    for definition in definitions {
        groups
            .entry(&definition.group)
            .or_default()
            .push(definition);
    }
    let has_one_group = groups.len() == 1;
    let mut written = PackageFiles {
        kinds: definitions.len(),
        ..PackageFiles::default()
    };
    let (mut views, mut modules, mut has_json) = (Vec::new(), Vec::new(), false);
    for (group, definitions) in groups {
        let module = names::free(module_of_group(group), &modules);
        modules.push(module.clone());
        let mut of_group = OfGroup {
            group,
            folder: if has_one_group {
                "src".to_owned()
            } else {
                format!("src/{module}")
            },
            path: if has_one_group {
                "crate".to_owned()
            } else {
                format!("crate::{module}")
            },
            renderer: &renderer,
            written: &mut written,
            has_json: false,
        };
        let versions = of_group.modules(&definitions, failed)?;
        has_json |= of_group.has_json;
        views.push(GroupView::new(group, module, &definitions, versions));
    }
    let view = PackageView {
        name: place.name.clone(),
        apiloom: place.dependency(),
        is_alone: place.is_alone(),
        has_json,
        groups: views,
        has_one_group,
    };
    written.files.extend(around(&view, &renderer)?);
    Ok(written)
}

/// The modules of the kinds of a group.
struct OfGroup<'a> {
    group: &'a str,
    folder: String,
    /// The Rust path of its module.
    path: String,
    renderer: &'a Renderer,
    written: &'a mut PackageFiles,
    has_json: bool,
}

impl OfGroup<'_> {
    /// Writes the modules. Returns those of each version.
    fn modules(
        &mut self,
        definitions: &[&Definition],
        failed: &mut Vec<(String, String)>,
    ) -> Result<BTreeMap<String, Vec<KindView>>, String> {
        let kinds: Vec<String> = definitions
            .iter()
            .map(|definition| module_of_kind(&definition.kind))
            .collect();
        let shared_module = names::free("shared".to_owned(), &kinds);
        let prepared: Vec<PreparedKind> = definitions
            .iter()
            .map(|definition| PreparedKind::new(definition))
            .collect();
        let path = self.path.clone();
        let of_shared = |version: &str| format!("{path}::{version}::{shared_module}");
        let shared = sharing::find(self.group, &prepared, &of_shared, self.renderer)?;
        let mut versions: BTreeMap<String, Vec<KindView>> = BTreeMap::new();
        for (version, shared) in &shared {
            let file = format!("{}/{version}/{shared_module}.rs", self.folder);
            self.written.files.push((file, shared.text.clone()));
            self.has_json |= shared.uses_json;
            versions.entry(version.clone()).or_default().push(KindView {
                name: String::new(),
                module: shared_module.clone(),
            });
        }
        for (definition, prepared) in definitions.iter().zip(&prepared) {
            let kind = module_of_kind(&definition.kind);
            let of_version = |version: &str| format!("{path}::{version}::{kind}");
            match versions::write(prepared, &of_version, &shared, self.renderer) {
                Err(reason) => failed.push((
                    definition.name(),
                    format!("{}: {reason}", definition.source),
                )),
                Ok(imported) => {
                    for version in self.add(definition, &kind, imported) {
                        versions.entry(version).or_default().push(KindView {
                            name: definition.kind.clone(),
                            module: kind.clone(),
                        });
                    }
                }
            }
        }
        Ok(versions)
    }

    /// Adds the modules of a kind. Returns their versions.
    fn add(&mut self, definition: &Definition, kind: &str, imported: KindModules) -> Vec<String> {
        let name = definition.name();
        let of_kind = |line: String| format!("{name}: {line}");
        self.written
            .lost
            .extend(imported.lost.into_iter().map(of_kind));
        self.written
            .notes
            .extend(imported.notes.into_iter().map(of_kind));
        self.has_json |= imported.has_json;
        let mut versions = Vec::new();
        for module in imported.modules {
            let file = format!("{}/{}/{kind}.rs", self.folder, module.version);
            self.written.files.push((file, module.text));
            versions.push(module.version);
        }
        versions
    }
}

impl GroupView {
    fn new(
        group: &str,
        module: String,
        definitions: &[&Definition],
        versions: BTreeMap<String, Vec<KindView>>,
    ) -> Self {
        let mut all = definitions
            .iter()
            .flat_map(|definition| &definition.versions);
        let is_deprecated = all.any(|version| version.is_deprecated);
        let mut versions: Vec<VersionView> = versions
            .into_iter()
            .map(|(name, mut kinds)| {
                kinds.sort_by(|a, b| a.module.cmp(&b.module));
                VersionView {
                    name,
                    group: group.to_owned(),
                    kinds,
                }
            })
            .collect();
        versions.sort_by_key(|version| std::cmp::Reverse(priority(&version.name)));
        let names: Vec<&str> = versions
            .iter()
            .map(|version| version.name.as_str())
            .collect();
        Self {
            name: group.to_owned(),
            module,
            version_names: names.join(", "),
            release: if is_deprecated {
                ", release = \"1.0\"".to_owned()
            } else {
                String::new()
            },
            versions,
        }
    }
}

/// The files around the modules of kinds.
fn around(view: &PackageView, renderer: &Renderer) -> Result<Vec<(String, String)>, String> {
    fn render(
        renderer: &Renderer,
        template: &str,
        view: &impl Serialize,
    ) -> Result<String, String> {
        let text = renderer.plain(template, view);
        text.map_err(|error| error.to_string())
    }
    let mut files = vec![
        (
            "Cargo.toml".to_owned(),
            render(renderer, "import/Cargo.toml.tera", view)?,
        ),
        (
            "src/lib.rs".to_owned(),
            render(renderer, "import/lib.rs.tera", view)?,
        ),
    ];
    for group in &view.groups {
        let folder = if view.has_one_group {
            "src".to_owned()
        } else {
            let folder = format!("src/{}", group.module);
            files.push((
                format!("{folder}.rs"),
                render(renderer, "import/group.rs.tera", group)?,
            ));
            folder
        };
        for version in &group.versions {
            let text = render(renderer, "import/version.rs.tera", version)?;
            files.push((format!("{folder}/{}.rs", version.name), text));
        }
    }
    Ok(files)
}

/// Refuses definitions that cannot stand in one package.
fn check_twins(definitions: &[&Definition]) -> Result<(), String> {
    let mut seen: BTreeMap<(&str, String), &Definition> = BTreeMap::new();
    for definition in definitions {
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
