//! Checks that need the whole package: groups, versions, storage, hubs and names; then builds the model.

mod assembly;
mod clients;
mod names;
mod paths;

use std::collections::BTreeMap;

use apiloom_model::{Code, Group, Kind, SourceSpan, SpannedValue};

use self::assembly::{Assembly, Hubs, gone, is_on, is_removed, rust_type};
use crate::collect::{Declaration, Declarations, location};
use crate::model;
use crate::package::Package;
use crate::problem::{Location, Problem};
use crate::source::{Crate, Definition, GROUP, Lookup, ModuleId, Namespace};

/// Builds the model of a package from its declarations, or returns all problems.
pub(crate) fn check(
    krate: &Crate,
    found: &Declarations,
    package: &Package,
) -> Result<model::Model, Vec<Problem>> {
    let mut checker = Checker {
        krate,
        found,
        has_server: package.server().is_ok(),
        has_clients: package.clients || package.has_client_crate,
        problems: Vec::new(),
    };
    checker.anything();
    checker.conditions();
    checker.groups();
    checker.constants();
    checker.kinds();
    if checker.problems.is_empty() && !found.incomplete {
        checker.empty_versions();
    }
    let hubs = checker.versions();
    checker.names();
    checker.paths();
    let clients = checker.clients();
    if !checker.problems.is_empty() {
        return Err(checker.problems);
    }
    Ok(Assembly {
        krate,
        found,
        hubs: &hubs,
        clients: &clients,
    }
    .model(&package.name, &package.crate_name))
}

struct Checker<'a> {
    krate: &'a Crate,
    found: &'a Declarations,
    has_server: bool,
    has_clients: bool,
    problems: Vec<Problem>,
}

impl<'a> Checker<'a> {
    fn at(&self, module: ModuleId, span: SourceSpan) -> Location {
        location(self.krate, module, span)
    }

    fn kind_at(&self, kind: &Declaration<Kind>) -> Location {
        self.krate.locate(kind.module, kind.value.root.name.span)
    }

    fn anything(&mut self) {
        if !self.found.incomplete && self.found.kinds.is_empty() {
            self.problems.push(Problem::error("the package declares no kind").help(
                "put `#[apiloom::resource(group = \"..\", version = \"..\", namespaced, storage)]` on a struct with `metadata: ObjectMeta`",
            ));
        }
        match &self.krate.generated {
            None if self.found.incomplete => {}
            None => {
                let root = self
                    .krate
                    .files
                    .first()
                    .map_or("the crate root", |file| file.name.as_str());
                self.problems.push(
                    Problem::error(format!("{root} does not declare the generated module"))
                        .help("add to it: `#[rustfmt::skip] pub mod generated;`"),
                );
            }
            Some(item) if !matches!(item.vis, syn::Visibility::Public(_)) => self.problems.push(
                Problem::error("the generated module is private")
                    .at(self.krate.locate(Crate::ROOT, item.ident.span()))
                    .help("write `pub mod generated;`: main calls it"),
            ),
            Some(_) => {}
        }
    }

    /// Refuses a `cfg` on kinds and groups of a package with a server. The list of kinds of other packages repeats it.
    fn conditions(&mut self) {
        if !self.has_server {
            return;
        }
        for kind in &self.found.kinds {
            if !kind.conditions.is_empty() {
                let name = &kind.value.root.name.text;
                self.problems.push(
                    Problem::error(format!("the kind `{name}` depends on a `cfg`"))
                        .at(self.kind_at(kind))
                        .help("generated code and manifests are the same for every build: leave the `cfg` out"),
                );
            }
        }
        for group in &self.found.groups {
            if !group.conditions.is_empty() {
                self.problems.push(
                    Problem::error("a group cannot depend on a `cfg`")
                        .at(self.at(group.module, group.value.name.span)),
                );
            }
        }
    }

    fn groups(&mut self) {
        let mut seen: BTreeMap<&str, &Declaration<Group>> = BTreeMap::new();
        for group in &self.found.groups {
            let name = &group.value.name;
            if let Some(first) = seen.insert(&name.value, group) {
                self.problems.push(
                    Problem::error(format!("{} is declared twice", group_text(&name.value)))
                        .at(self.at(group.module, name.span))
                        .related(
                            self.at(first.module, first.value.name.span),
                            "declared here",
                        ),
                );
            }
        }
    }

    /// Checks that generated code can name the constants of `group!`, which have the same name in each module.
    fn constants(&mut self) {
        let groups = &self.found.groups;
        for (index, group) in groups.iter().enumerate() {
            let place = self.at(group.module, group.value.name.span);
            if let Some(first) = groups[..index]
                .iter()
                .find(|other| other.module == group.module)
            {
                self.problems.push(
                    Problem::error("two groups in one module")
                        .at(place.clone())
                        .related(
                            self.at(first.module, first.value.name.span),
                            "the other one",
                        )
                        .help("declare one of them in a module of its own"),
                );
            }
            let private =
                self.krate
                    .problem_of_privacy("the group", group.module, GROUP, Namespace::Value);
            self.problems
                .extend(private.map(|problem| problem.at(place)));
        }
    }

    /// Reports versions without kinds. Called only if every kind is in a declared version, since a misspelt one would
    /// be reported twice.
    fn empty_versions(&mut self) {
        for group in &self.found.groups {
            let name = &group.value.name.value;
            for version in &group.value.versions {
                let mut kinds = self.found.kinds.iter().map(|kind| &kind.value);
                if !kinds
                    .any(|kind| kind.group.value == *name && kind.version.value == version.value)
                {
                    self.problems.push(
                        Problem::error(format!(
                            "version `{}` of {} has no kind",
                            version.value,
                            group_text(name)
                        ))
                        .at(self.at(group.module, version.span))
                        .help("remove it here, or add a kind of this version"),
                    );
                }
            }
        }
    }

    fn kinds(&mut self) {
        for kind in &self.found.kinds {
            let (group, version) = (&kind.value.group, &kind.value.version);
            let Some(declared) = self
                .found
                .groups
                .iter()
                .find(|other| other.value.name.value == group.value)
            else {
                self.undeclared_group(kind);
                continue;
            };
            let versions = &declared.value.versions;
            let is_declared = versions.iter().any(|other| other.value == version.value);
            if !is_declared && declared.value.versions_are_known {
                let problem = Problem::error(format!(
                    "version `{}` is not declared for {}",
                    version.value,
                    group_text(&group.value)
                ))
                .at(self.at(kind.module, version.span))
                .related(
                    self.at(declared.module, declared.value.name.span),
                    "the group is declared here",
                );
                self.problems.push(suggest(
                    problem,
                    &version.value,
                    versions,
                    "add it to `versions`",
                ));
            }
            self.lifecycle(kind, declared);
        }
    }

    fn undeclared_group(&mut self, kind: &Declaration<Kind>) {
        // The core group's name is empty, but so is the name of a group that could not be read.
        let unknown = self.found.groups.is_empty() || kind.value.group.value.is_empty();
        if self.found.unread_group || self.found.incomplete && unknown {
            return;
        }
        let (group, version) = (&kind.value.group, &kind.value.version.value);
        let problem = Problem::error(format!("{} is not declared", group_text(&group.value)))
            .at(self.at(kind.module, group.span));
        let names: Vec<_> = self
            .found
            .groups
            .iter()
            .map(|group| group.value.name.clone())
            .collect();
        let advice = format!(
            "add to lib.rs: `apiloom::group! {{ name = {:?}, versions = [{version}] }}`",
            group.value
        );
        self.problems
            .push(suggest(problem, &group.value, &names, &advice));
    }

    fn lifecycle(&mut self, kind: &Declaration<Kind>, group: &Declaration<Group>) {
        let Some(lifecycle) = &kind.value.lifecycle else {
            return;
        };
        let release = group.value.release.as_ref().map(|release| release.value);
        let dated = [
            &lifecycle.introduced,
            &lifecycle.deprecated,
            &lifecycle.removed,
        ];
        let first = dated.into_iter().flatten().next();
        if let (None, Some(date)) = (release, first)
            && group.value.release_is_known
        {
            self.problems.push(
                Problem::error("the lifecycle has nothing to compare with")
                    .at(self.at(kind.module, date.span))
                    .related(
                        self.at(group.module, group.value.name.span),
                        "this group has no release",
                    )
                    .help("add `release = \"..\"` to the `group!`"),
            );
        }
        let removed = lifecycle
            .removed
            .as_ref()
            .filter(|removed| release.is_some_and(|now| now >= removed.value));
        if let (Some(removed), Some(now)) = (removed, release)
            && self
                .same_kind(&kind.value)
                .all(|other| is_removed(&other.value, now))
        {
            self.problems.push(
                Problem::error(format!(
                    "`{}` is removed in {}, and this is {now}: no version of it is left",
                    kind.value.kind.value, removed.value
                ))
                .at(self.at(kind.module, removed.span))
                .help("remove the type, or say a later release"),
            );
        }
        if let Some(removed) = removed
            && kind.value.storage
            && self
                .same_kind(&kind.value)
                .any(|other| !gone(&other.value, release))
        {
            self.problems.push(
                Problem::error(format!(
                    "`{}` is stored in a version that is removed",
                    kind.value.kind.value
                ))
                .at(self.at(kind.module, removed.span))
                .help("store it in a version that is still served, or remove the type"),
            );
        }
        if let Some((group, version, name)) = &lifecycle.replacement {
            let ours = self
                .found
                .groups
                .iter()
                .any(|other| other.value.name.value == *group);
            let exists = self.found.kinds.iter().any(|other| {
                let other = &other.value;
                other.group.value == *group
                    && other.version.value == *version
                    && other.kind.value == *name
            });
            if ours && !exists && !self.found.incomplete {
                self.problems.push(
                    Problem::error(format!(
                        "the replacement {name} of {group}/{version} does not exist"
                    ))
                    .at(self.at(kind.module, kind.value.span)),
                );
            }
        }
    }

    /// All versions of a kind, including itself.
    fn same_kind<'b>(
        &self,
        kind: &'b Kind,
    ) -> impl Iterator<Item = &'a Declaration<Kind>> + use<'a, 'b> {
        self.found.kinds.iter().filter(|other| {
            other.value.group.value == kind.group.value && other.value.kind.value == kind.kind.value
        })
    }

    /// Checks the storage version and the hub of every kind.
    fn versions(&mut self) -> Hubs {
        let mut hubs = Hubs::new();
        let mut done = Vec::new();
        for kind in &self.found.kinds {
            let key = (
                kind.value.group.value.clone(),
                kind.value.kind.value.clone(),
            );
            // A simple kind is never converted.
            if done.contains(&key) || kind.value.is_simple {
                continue;
            }
            let versions: Vec<_> = self.same_kind(&kind.value).collect();
            self.storage(&versions);
            if let Some(hub) = self.hub(&versions) {
                hubs.insert(key.clone(), hub);
            }
            done.push(key);
        }
        hubs
    }

    fn storage(&mut self, versions: &[&Declaration<Kind>]) {
        let stored: Vec<_> = versions.iter().filter(|kind| kind.value.storage).collect();
        let name = &versions[0].value.kind.value;
        match stored.as_slice() {
            [] if versions.iter().all(|kind| !kind.value.has_store) => {}
            // The only version of a kind is its storage version.
            [] if self.found.incomplete || versions.len() == 1 => {}
            [] => {
                let mut problem = Problem::error(format!("no version of `{name}` is stored"))
                    .at(self.kind_at(versions[0]))
                    .help("add `storage` to the version in which objects are kept");
                for other in &versions[1..] {
                    problem = problem.related(self.kind_at(other), "the same kind");
                }
                self.problems.push(problem);
            }
            [stored] => self.stored_version_is_on(stored, versions),
            [first, others @ ..] => {
                for other in others {
                    self.problems.push(
                        Problem::error(format!("`{name}` is stored in two versions"))
                            .at(self.kind_at(other))
                            .related(self.kind_at(first), "stored in this version, too")
                            .help("leave `storage` on one of them"),
                    );
                }
            }
        }
    }

    /// Reports a storage version that is off by default while others are on: an alpha version, say, should not hold the
    /// objects of a beta version.
    fn stored_version_is_on(
        &mut self,
        stored: &Declaration<Kind>,
        versions: &[&Declaration<Kind>],
    ) {
        let on = versions.iter().find(|other| is_on(&other.value));
        let Some(on) = on.filter(|_| stored.value.disabled_by_default) else {
            return;
        };
        let name = &stored.value.kind.value;
        self.problems.push(
            Problem::error(format!(
                "`{name}` is stored in a version that is disabled by default"
            ))
            .at(self.kind_at(stored))
            .related(self.kind_at(on), "this version is enabled")
            .help("move `storage` to an enabled version, or remove `disabled_by_default`"),
        );
    }

    /// The hub's version, if every other version names it.
    fn hub(&mut self, versions: &[&Declaration<Kind>]) -> Option<String> {
        let (spokes, rest): (Vec<&Declaration<Kind>>, Vec<&Declaration<Kind>>) = versions
            .iter()
            .partition(|kind| kind.value.spoke_of.is_some());
        let hub = rest
            .iter()
            .find(|kind| kind.value.hub)
            .or(rest.first())
            .copied();
        let Some(hub) = hub else {
            if !self.found.incomplete {
                self.problems.push(
                    Problem::error(format!("`{}` has no hub", versions[0].value.kind.value))
                        .at(self.kind_at(versions[0]))
                        .help("one version must not have `spoke_of`: every other version converts to and from it"),
                );
            }
            return None;
        };
        // Duplicates of a version are reported elsewhere.
        let others = rest
            .iter()
            .filter(|kind| kind.value.version.value != hub.value.version.value);
        for kind in others {
            let name = &kind.value.kind.value;
            let problem = if kind.value.hub {
                Problem::error(format!("`{name}` has two hubs")).help("leave `hub` on one of them")
            } else {
                let path = self.path_of(hub);
                Problem::error(format!(
                    "nothing says how this version of `{name}` converts"
                ))
                .help(format!("add `spoke_of = {path}`"))
            };
            self.problems.push(
                problem
                    .at(self.kind_at(kind))
                    .related(self.kind_at(hub), "the hub"),
            );
        }
        for spoke in spokes {
            if let Some(path) = &spoke.value.spoke_of {
                self.spoke(spoke, path, hub);
            }
        }
        Some(hub.value.version.value.clone())
    }

    fn spoke(&mut self, spoke: &Declaration<Kind>, code: &Code, hub: &Declaration<Kind>) {
        let place = self.at(spoke.module, code.span());
        let text = code.text();
        let target = syn::parse2::<syn::Path>(quote::ToTokens::to_token_stream(code))
            .map(|path| self.krate.resolve(spoke.module, &path, Namespace::Type))
            .map(|found| self.krate.behind_alias(found));
        let right = format!("write `spoke_of = {}`", self.path_of(hub));
        let problem = match target {
            Ok(Lookup::Found(Definition::Item(module, name))) => {
                let is_at = |kind: &Declaration<Kind>| {
                    kind.module == module && kind.value.root.name.text == name
                };
                // If there are errors, the kind may be a hub whose attributes could not be read.
                let may_be_hub = self.found.incomplete && !self.found.kinds.iter().any(is_at);
                if is_at(hub) || may_be_hub {
                    return;
                }
                Problem::error(format!(
                    "`{text}` is not the hub of `{}`",
                    spoke.value.kind.value
                ))
            }
            Ok(Lookup::Found(_)) | Err(_) => {
                Problem::error(format!("`{text}` is not a kind of this package"))
            }
            Ok(Lookup::Missing | Lookup::Unknown) => {
                Problem::error(format!("cannot find `{text}` in this package"))
            }
        };
        self.problems.push(
            problem
                .at(place)
                .related(self.kind_at(hub), "the hub")
                .help(right),
        );
    }

    fn path_of(&self, kind: &Declaration<Kind>) -> String {
        rust_type(self.krate, kind)
    }
}

/// The name of a group for error messages.
fn group_text(name: &str) -> String {
    if name.is_empty() {
        "the core group".to_owned()
    } else {
        format!("group `{name}`")
    }
}

/// Adds "did you mean" to a problem, or else the advice.
fn suggest(
    problem: Problem,
    written: &str,
    known: &[SpannedValue<String>],
    advice: &str,
) -> Problem {
    let names = known.iter().map(|name| name.value.as_str());
    match apiloom_model::diagnostics::nearest(written, names) {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None => problem.help(advice),
    }
}
