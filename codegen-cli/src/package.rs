//! Finds a package, its source and its server with cargo.

use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{
    Dependency, DependencyKind, MetadataCommand, Package as CargoPackage, Target,
};

use crate::cargo::folder_of;
use crate::console::cause;
use crate::source::Externs;

/// An error that the user can fix, in one or a few lines, without `error: `.
pub(crate) type Complaint = String;

/// The path of the generated `main` in the server package.
pub(crate) const MAIN: &str = "generated/main.rs";

/// A package of annotated types.
#[derive(Debug)]
pub(crate) struct Package {
    /// The folder, relative to the current one if possible.
    pub(crate) dir: PathBuf,
    /// Its name.
    pub(crate) name: String,
    /// The name of its library as a path segment.
    pub(crate) crate_name: String,
    /// The library's root file.
    pub(crate) root: PathBuf,
    /// The names of external crates in its library.
    pub(crate) externs: Externs,
    /// The package that holds the server's binary.
    pub(crate) server: ServerPackage,
    /// Whether the OpenAPI v2 document is generated too: with `openapi-v2 = true`.
    pub(crate) openapi_v2: bool,
    /// Whether clients and informers are generated: with `clients = true`.
    pub(crate) clients: bool,
    /// Whether types for kube-rs are generated: with `kube = true`.
    pub(crate) kube: bool,
    /// Whether its Cargo.toml has the cargo feature `fake`, for clients with a server of their own in tests.
    pub(crate) fake: bool,
    /// The folder of cargo's output.
    pub(crate) target_dir: PathBuf,
    /// The folder of apiloom, if the package depends on it by path.
    pub(crate) apiloom: Option<PathBuf>,
    /// The version of apiloom that the package depends on, as written.
    pub(crate) apiloom_version: String,
    /// Whether clients are generated as a package of their own.
    pub(crate) has_client_crate: bool,
}

/// The answer to which package has the server.
#[derive(Debug)]
pub(crate) enum ServerPackage {
    /// This one.
    Known(Server),
    /// None: the package is a list of kinds for others. Its code names the items of this crate.
    None { crate_path: String },
}

/// The package with the generated `main`; may be the package of types itself.
#[derive(Debug)]
pub(crate) struct Server {
    /// Its Cargo.toml.
    pub(crate) manifest: PathBuf,
    /// Its folder relative to the package of types, with `/`; empty for the same folder.
    pub(crate) dir: String,
    /// The name of the binary.
    pub(crate) bin: String,
    /// The names of its cargo features.
    pub(crate) features: Vec<String>,
    /// The workspace of the server package.
    pub(crate) workspace: Workspace,
}

/// A workspace as cargo sees it; each package is in one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Workspace {
    /// Its folder.
    pub(crate) root: PathBuf,
    /// Cargo's target folder, with the binaries.
    pub(crate) target_dir: PathBuf,
    /// Cargo's folder of intermediate artifacts; `None` for a version of cargo that cannot be given another one.
    pub(crate) build_dir: Option<PathBuf>,
    /// The names of its packages.
    pub(crate) members: Vec<String>,
}

impl Workspace {
    /// The workspace of a package.
    pub(crate) fn of(manifest: &Path) -> Result<Workspace, Complaint> {
        Ok(Workspace::new(&metadata(manifest)?))
    }

    fn new(metadata: &cargo_metadata::Metadata) -> Workspace {
        let members = metadata.workspace_packages().into_iter();
        Workspace {
            root: metadata.workspace_root.clone().into_std_path_buf(),
            target_dir: metadata.target_directory.clone().into_std_path_buf(),
            build_dir: metadata.build_directory.clone().map(Into::into),
            members: members.map(|package| package.name.to_string()).collect(),
        }
    }
}

impl Server {
    /// The cargo name of a requested feature: one that the server does not define is apiloom's.
    pub(crate) fn feature(&self, asked: &str) -> String {
        if asked.contains('/') || self.features.iter().any(|own| own == asked) {
            asked.to_owned()
        } else {
            format!("apiloom/{asked}")
        }
    }
}

impl Package {
    /// Finds the package; `path` is a folder or a Cargo.toml.
    pub(crate) fn locate(path: &Path) -> Result<Package, Complaint> {
        let manifest = manifest_of(path)?;
        let metadata = metadata(&manifest)?;
        let package = package_at(&metadata.packages, &manifest)
            .ok_or_else(|| not_a_package(&manifest, &metadata))?;
        let library = library(package).ok_or_else(|| {
            format!("package `{}` has no library: the annotated types live in src/lib.rs and its modules", package.name)
        })?;
        let externs = externs(package);
        let dir = folder_of(&manifest).to_path_buf();
        let server = if has_server(package)? {
            check_dependency(package, &manifest)?;
            ServerPackage::Known(server(package, &dir, &metadata)?)
        } else {
            ServerPackage::None {
                crate_path: crate_path(package, &externs)?,
            }
        };
        Ok(Package {
            server,
            openapi_v2: flag(package, "openapi-v2")?,
            clients: flag(package, "clients")?,
            kube: kube_flag(package, &manifest)?,
            fake: package.features.contains_key("fake"),
            name: package.name.to_string(),
            crate_name: library.name.replace('-', "_"),
            root: relative_to(library.src_path.as_std_path(), &dir),
            externs,
            target_dir: metadata.target_directory.clone().into_std_path_buf(),
            apiloom: folder_of_apiloom(package),
            apiloom_version: dependencies(package)
                .find(|dependency| dependency.name == FACADE)
                .map_or_else(|| "*".to_owned(), |dependency| dependency.req.to_string()),
            has_client_crate: false,
            dir,
        })
    }
}

impl Package {
    /// The server.
    ///
    /// # Errors
    /// When the package has none.
    pub(crate) fn server(&self) -> Result<&Server, Complaint> {
        match &self.server {
            ServerPackage::Known(server) => Ok(server),
            ServerPackage::None { .. } => Err(format!(
                "package `{}` has no server: its Cargo.toml says `server = false` in [package.metadata.apiloom]",
                self.name
            )),
        }
    }
}

fn manifest_of(path: &Path) -> Result<PathBuf, Complaint> {
    if !path.exists() {
        return Err(no_such_path(path));
    }
    if path.is_file() {
        return if path.file_name().is_some_and(|name| name == "Cargo.toml") {
            Ok(path.to_path_buf())
        } else {
            Err(format!(
                "{} is neither a directory nor a Cargo.toml",
                path.display()
            ))
        };
    }
    let manifest = path.join("Cargo.toml");
    if manifest.is_file() {
        return Ok(manifest);
    }
    let mut message = format!("no Cargo.toml in {}", path.display());
    let inside = packages_inside(path);
    if !inside.is_empty() {
        message.push_str(&format!("\n  help: did you mean {}?", inside.join(" or ")));
    }
    Err(message)
}

fn no_such_path(path: &Path) -> Complaint {
    let mut message = format!("no such path: {}", path.display());
    let written = path.file_name().unwrap_or_default().to_string_lossy();
    let siblings = fs::read_dir(folder_of(path))
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    let names: Vec<String> = siblings
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    if let Some(near) =
        apiloom_model::diagnostics::nearest(&written, names.iter().map(String::as_str))
    {
        let near = path.with_file_name(near);
        message.push_str(&format!("\n  help: did you mean {}?", near.display()));
    }
    message
}

/// Folders one level down that contain a Cargo.toml.
fn packages_inside(dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut found: Vec<String> = entries
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.join("Cargo.toml").is_file())
        .map(|path| path.display().to_string())
        .collect();
    found.sort();
    found.truncate(5);
    found
}

fn metadata(manifest: &Path) -> Result<cargo_metadata::Metadata, Complaint> {
    MetadataCommand::new()
        .current_dir(folder_of(manifest))
        .no_deps()
        .exec()
        .map_err(|error| match error {
            cargo_metadata::Error::CargoMetadata { stderr } => {
                format!(
                    "cargo cannot read {}: {}",
                    manifest.display(),
                    cause(&stderr)
                )
            }
            other => format!("cargo cannot read {}: {other}", manifest.display()),
        })
}

fn package_at<'a>(packages: &'a [CargoPackage], manifest: &Path) -> Option<&'a CargoPackage> {
    let manifest = manifest.canonicalize().ok()?;
    packages.iter().find(|package| {
        package
            .manifest_path
            .as_std_path()
            .canonicalize()
            .is_ok_and(|other| other == manifest)
    })
}

fn not_a_package(manifest: &Path, metadata: &cargo_metadata::Metadata) -> Complaint {
    let mut message = format!("{} is a workspace, not a package", manifest.display());
    let root = folder_of(manifest);
    let members: Vec<String> = metadata
        .packages
        .iter()
        .filter(|package| library(package).is_some() && !externs(package).apiloom.is_empty())
        .map(|package| relative_to(package.manifest_path.as_std_path(), root))
        .map(|manifest| folder_of(&manifest).display().to_string())
        .collect();
    if !members.is_empty() {
        message.push_str(&format!(
            "\n  help: name the directory of one of its members: {}",
            members.join(", ")
        ));
    }
    message
}

fn library(package: &CargoPackage) -> Option<&Target> {
    package.targets.iter().find(|target| target.is_lib())
}

/// `path`, spelled with the user's spelling of `dir` if it is below `dir`.
fn relative_to(path: &Path, dir: &Path) -> PathBuf {
    match dir.canonicalize().ok().zip(path.canonicalize().ok()) {
        Some((base, full)) => match full.strip_prefix(&base) {
            Ok(rest) if dir == Path::new(".") => rest.to_path_buf(),
            Ok(rest) => dir.join(rest),
            Err(_) => path.to_path_buf(),
        },
        None => path.to_path_buf(),
    }
}

/// Checks that the package depends on apiloom under this name, which expansions and generated code use as `::apiloom`.
fn check_dependency(package: &CargoPackage, manifest: &Path) -> Result<(), Complaint> {
    let (name, manifest) = (&package.name, manifest.display());
    let facade = dependencies(package).filter(|dependency| dependency.name == FACADE);
    match facade.map(extern_name).collect::<Vec<_>>().as_slice() {
        [own] if own == FACADE => Ok(()),
        [] => Err(format!(
            "package `{name}` does not depend on apiloom\n  help: add `apiloom` to [dependencies] in {manifest}"
        )),
        [other, ..] => Err(format!(
            "package `{name}` calls apiloom `{other}`\n  help: keep the name `apiloom` in [dependencies] in {manifest}: generated code uses it"
        )),
    }
}

/// The crate that users depend on.
const FACADE: &str = "apiloom";

/// The crates whose macros and types the source may name: the facade, and those below it.
const OWN: [&str; 3] = [FACADE, "apiloom-macros", "apiloom-meta"];

fn dependencies(package: &CargoPackage) -> impl Iterator<Item = &Dependency> {
    let all = package.dependencies.iter();
    all.filter(|one| one.kind == DependencyKind::Normal)
}

/// The name of a dependency in Rust paths.
fn extern_name(dependency: &Dependency) -> String {
    let name = dependency.rename.as_ref().unwrap_or(&dependency.name);
    name.replace('-', "_")
}

fn externs(package: &CargoPackage) -> Externs {
    let mut externs = Externs::default();
    for dependency in dependencies(package) {
        let name = extern_name(dependency);
        let list = if OWN.contains(&dependency.name.as_str()) {
            &mut externs.apiloom
        } else {
            &mut externs.others
        };
        if !list.contains(&name) {
            list.push(name);
        }
    }
    externs
}

fn folder_of_apiloom(package: &CargoPackage) -> Option<PathBuf> {
    let mut dependencies = package.dependencies.iter();
    let apiloom = dependencies.find(|dependency| dependency.name == "apiloom")?;
    apiloom.path.clone().map(Into::into)
}

/// The value of a key in `[package.metadata.apiloom]`.
fn setting<'a>(package: &'a CargoPackage, key: &str) -> Option<&'a serde_json::Value> {
    package.metadata.get("apiloom")?.get(key)
}

/// The value of a key that is `true` or `false`; false if it is absent.
fn flag(package: &CargoPackage, key: &str) -> Result<bool, Complaint> {
    match setting(package, key) {
        None => Ok(false),
        Some(value) => value
            .as_bool()
            .ok_or_else(|| format!("package.metadata.apiloom.{key} must be `true` or `false`")),
    }
}

/// Whether types for kube-rs are generated. They are behind a cargo feature of the package, which brings kube-rs.
fn kube_flag(package: &CargoPackage, manifest: &Path) -> Result<bool, Complaint> {
    let is_on = flag(package, "kube")?;
    let has_dependency = dependencies(package).any(|dependency| extern_name(dependency) == "kube");
    if !is_on || (has_dependency && package.features.contains_key("kube")) {
        return Ok(is_on);
    }
    Err(format!(
        "package `{}` has `kube = true` in [package.metadata.apiloom], and no cargo feature `kube` with the dependency\n  \
         help: add `kube = {{ version = \"5\", default-features = false, optional = true }}` to [dependencies] and \
         `kube = [\"dep:kube\"]` to [features] in {}",
        package.name,
        manifest.display()
    ))
}

/// Whether the package has a server: unless `server = false`.
fn has_server(package: &CargoPackage) -> Result<bool, Complaint> {
    match setting(package, "server") {
        Some(serde_json::Value::Bool(false)) => Ok(false),
        _ if setting(package, "crate").is_some() => Err(
            "package.metadata.apiloom.crate is for packages without a server: set `server = false` too"
                .to_owned(),
        ),
        _ => Ok(true),
    }
}

/// The crate that the list of kinds names: `crate`, a dependency, else the facade.
fn crate_path(package: &CargoPackage, externs: &Externs) -> Result<String, Complaint> {
    let name = match setting(package, "crate") {
        None => FACADE,
        Some(value) => value
            .as_str()
            .ok_or("package.metadata.apiloom.crate must be the name of a crate")?,
    };
    if externs.apiloom.iter().any(|own| own == name) {
        return Ok(name.to_owned());
    }
    Err(format!(
        "the kinds of package `{}` are listed for the crate `{name}`, which is none of its apiloom crates\n  \
         help: it depends on these: {}",
        package.name,
        externs.apiloom.join(", ")
    ))
}

/// The server package: `[package.metadata.apiloom] server`, else `server/` if it is a package, else the package itself.
fn server(
    package: &CargoPackage,
    dir: &Path,
    siblings: &cargo_metadata::Metadata,
) -> Result<Server, Complaint> {
    let relative = match setting(package, "server") {
        Some(value) => {
            let text = value.as_str().ok_or(
                "package.metadata.apiloom.server must be the path of a directory, or `false`",
            )?;
            let text = text.replace('\\', "/");
            let text = text.trim_end_matches('/');
            if text == "." {
                String::new()
            } else {
                text.strip_prefix("./").unwrap_or(text).to_owned()
            }
        }
        None if dir.join("server/Cargo.toml").is_file() => "server".to_owned(),
        None => String::new(),
    };
    let manifest = dir.join(&relative).join("Cargo.toml");
    if !manifest.is_file() {
        return Err(format!(
            "no server package: {} does not exist",
            manifest.display()
        ));
    }
    let own;
    let (found, workspace) = match package_at(&siblings.packages, &manifest) {
        Some(found) => (found, Workspace::new(siblings)),
        None => {
            own = metadata(&manifest)?;
            let found = package_at(&own.packages, &manifest);
            let found = found
                .ok_or_else(|| format!("{} is a workspace, not a package", manifest.display()))?;
            (found, Workspace::new(&own))
        }
    };
    let main = found
        .manifest_path
        .as_std_path()
        .with_file_name("")
        .join(MAIN);
    let bin = found
        .targets
        .iter()
        .find(|target| target.is_bin() && target.src_path.as_std_path() == main);
    let bin = bin.ok_or_else(|| no_bin(&manifest, &package.name))?;
    Ok(Server {
        manifest,
        dir: relative,
        bin: bin.name.clone(),
        features: found.features.keys().cloned().collect(),
        workspace,
    })
}

fn no_bin(manifest: &Path, package: &str) -> Complaint {
    format!(
        "{} has no binary for the generated server\n  help: add\n    [[bin]]\n    name = \"{package}-server\"\n    path = \"{MAIN}\"",
        manifest.display()
    )
}
