//! `apiloom new`: writes a package with one kind, its server, and a controller with its test.
//!
//! Everything is checked before the first file is written. What is written is the user's own from then on, except for the
//! generated files.

pub(crate) mod names;

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::Serialize;

use crate::cargo_config;
use crate::console::{Console, Failure};
use crate::driver;
use crate::flags::{Generate, New, Target};
use crate::render::Renderer;
use crate::{toml, view};

/// The file that a folder of a package has.
const MANIFEST: &str = "Cargo.toml";

/// The view of the templates.
#[derive(Debug, Serialize)]
pub(crate) struct NewView {
    /// The name of the package.
    name: String,
    /// Its name in Rust paths.
    krate: String,
    group: String,
    kind: String,
    /// The resource, such as `things`.
    plural: String,
    /// The method of the generated clients for the group and version, such as `zoo_v1alpha1`.
    version_method: String,
    /// Their method for the resource.
    resource_method: String,
    /// The value of the dependency on apiloom, such as `version = "1.0"`.
    apiloom: String,
    /// Whether there are types for kube-rs.
    kube: bool,
    /// Whether the package must say that it belongs to no workspace around it.
    is_alone: bool,
}

/// The version of the kind.
const VERSION: &str = "v1alpha1";

/// The files, with their templates.
const FILES: [(&str, &str); 7] = [
    (MANIFEST, "new/Cargo.toml.tera"),
    ("README.md", "new/README.md.tera"),
    ("src/lib.rs", "new/lib.rs.tera"),
    ("src/v1alpha1.rs", "new/v1alpha1.rs.tera"),
    ("src/controller.rs", "new/controller.rs.tera"),
    ("src/main.rs", "new/main.rs.tera"),
    ("tests/controller.rs", "new/test.rs.tera"),
];

/// Those that packages with types for kube-rs have besides.
const KUBE_FILES: [(&str, &str); 1] = [("tests/kube.rs", "new/kube_test.rs.tera")];

impl NewView {
    /// Checks the names; those that the user did not give follow from the name of the folder.
    fn new(flags: &New, folder: &Path) -> Result<Self, String> {
        let of_folder = folder.file_name().unwrap_or_default().to_string_lossy();
        let name = flags.name.as_deref().unwrap_or(&of_folder);
        names::check_package(name, flags.kube)?;
        let group = match &flags.group {
            Some(group) => names::check_group(group).map(|()| group.clone())?,
            None => format!("{name}.example.com"),
        };
        let kind = match &flags.kind {
            Some(kind) => kind.clone(),
            None => names::kind_of(name),
        };
        names::check_kind(&kind)?;
        let plural = apiloom_model::names::plural(&kind);
        Ok(Self {
            name: name.to_owned(),
            krate: name.replace('-', "_"),
            version_method: view::method_of_only_group(&group, VERSION),
            group,
            resource_method: view::method_of_resource(&plural),
            plural,
            kind,
            apiloom: String::new(),
            kube: flags.kube,
            is_alone: false,
        })
    }
}

#[cfg(test)]
impl NewView {
    /// A view for tests of the templates, with all that it can have or with nothing.
    pub(crate) fn example(is_full: bool) -> Self {
        Self {
            name: "zoo-keeper".to_owned(),
            krate: "zoo_keeper".to_owned(),
            group: "zoo.example.com".to_owned(),
            kind: "ZooKeeper".to_owned(),
            plural: "zookeepers".to_owned(),
            version_method: "zoo_v1alpha1".to_owned(),
            resource_method: "zookeepers".to_owned(),
            apiloom: "version = \"1.0\"".to_owned(),
            kube: is_full,
            is_alone: is_full,
        }
    }
}

/// Writes the package, and its files that need no build.
pub(crate) fn new(flags: &New, console: &mut Console<'_>) -> Result<(), Failure> {
    let folder = absolute(&flags.path)?;
    let mut view = NewView::new(flags, &folder)?;
    check_free(&flags.path, &folder)?;
    let apiloom = match &flags.apiloom_path {
        Some(path) => Some(checkout(path).ok_or_else(|| no_checkout(path))?),
        None => checkout_around(&folder).or_else(own_checkout),
    };
    view.is_alone = is_in_workspace(&folder);
    view.apiloom = dependency(apiloom.as_deref(), &folder);
    let renderer = Renderer::new(String::new()).map_err(|error| error.to_string())?;
    let more: &[(&str, &str)] = if view.kube { &KUBE_FILES } else { &[] };
    let files: Vec<(&str, String)> = FILES
        .iter()
        .chain(more)
        .map(|(path, template)| Ok((*path, renderer.plain(template, &view)?)))
        .collect::<Result<_, crate::RenderError>>()
        .map_err(|error| error.to_string())?;
    let written = write(&folder, &files, apiloom.as_deref());
    written.map_err(|error| format!("cannot write {}: {error}", flags.path.display()))?;
    generate(&flags.path, console)?;
    let path = flags.path.display();
    console.say(format_args!(
        "{path}: kind {} of {}/v1alpha1, in src/v1alpha1.rs\n  \
         serve it:    apiloom run {path}\n  \
         test it:     cd {path} && cargo test",
        view.kind, view.group
    ));
    Ok(())
}

/// Writes the generated files that need no build, so that cargo finds all that the package names.
pub(crate) fn generate(path: &Path, console: &mut Console<'_>) -> Result<(), Failure> {
    let flags = Generate {
        target: Target {
            path: path.to_path_buf(),
        },
        check: false,
        fast: true,
        force: false,
        client_crate: None,
        server: None,
        target_dir: None,
    };
    let mut quiet = Console {
        out: &mut io::sink(),
        err: console.err,
        terminal: console.terminal,
    };
    driver::generate(&flags, &mut quiet)
}

pub(crate) fn absolute(path: &Path) -> Result<PathBuf, String> {
    let whole = std::path::absolute(path)
        .map_err(|error| format!("cannot find the current directory: {error}"))?;
    // Of a folder that does not exist, the one around it may be a link.
    let parent = whole.parent().and_then(|parent| parent.canonicalize().ok());
    Ok(match (parent, whole.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => whole,
    })
}

/// Refuses a path where there is something.
pub(crate) fn check_free(path: &Path, folder: &Path) -> Result<(), String> {
    let shown = path.display();
    match fs::read_dir(folder).map(Iterator::count) {
        Ok(0) => Ok(()),
        Ok(_) => Err(format!(
            "{shown} exists and is not empty\n  help: name another folder; the package is written to a new one"
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err(format!("{shown} is, or is in, a file, not a folder"))
        }
        Err(error) => Err(format!("cannot read {shown}: {error}")),
    }
}

/// The facade's folder in a checkout of apiloom, or a folder that is the facade's.
pub(crate) fn checkout(path: &Path) -> Option<PathBuf> {
    let places = [path.join("runtime"), path.to_path_buf()];
    let found = places.into_iter().find(|place| {
        let manifest = fs::read_to_string(place.join(MANIFEST)).unwrap_or_default();
        manifest
            .lines()
            .any(|line| line.trim() == "name = \"apiloom\"")
    });
    found?.canonicalize().ok()
}

pub(crate) fn no_checkout(path: &Path) -> String {
    format!(
        "no apiloom in {}\n  help: --apiloom-path names a clone of apiloom, the folder with `runtime/{MANIFEST}`",
        path.display()
    )
}

/// The checkout in which the new package is.
pub(crate) fn checkout_around(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().skip(1).find_map(checkout)
}

/// The checkout from which this command was built, if it was and that is still there.
pub(crate) fn own_checkout() -> Option<PathBuf> {
    checkout(Path::new(env!("CARGO_MANIFEST_DIR")).parent()?)
}

/// Whether a folder is in that of a workspace, whose member it would have to be.
pub(crate) fn is_in_workspace(folder: &Path) -> bool {
    folder.ancestors().skip(1).any(|around| {
        let manifest = fs::read_to_string(around.join(MANIFEST)).unwrap_or_default();
        manifest.lines().any(|line| line.trim() == "[workspace]")
    })
}

/// The dependency on a clone of apiloom, or on the release of this command.
pub(crate) fn dependency(runtime: Option<&Path>, folder: &Path) -> String {
    match runtime {
        Some(runtime) => format!("path = {}", toml::string(&relative(runtime, folder))),
        None => format!("version = \"{}\"", env!("CARGO_PKG_VERSION")),
    }
}

/// A path from one folder to another, with `/`. Both are absolute, without links.
fn relative(to: &Path, from: &Path) -> String {
    let common = to
        .components()
        .zip(from.components())
        .take_while(|(a, b)| a == b)
        .count();
    // On Windows, nothing leads from one drive to another.
    if common == 0 {
        return to.to_string_lossy().into_owned();
    }
    let up = from.components().skip(common).map(|_| "..".into());
    let down = to.components().skip(common).map(|part| match part {
        Component::Normal(name) => name.to_string_lossy().into_owned(),
        other => other.as_os_str().to_string_lossy().into_owned(),
    });
    let parts: Vec<String> = up.chain(down).collect();
    parts.join("/")
}

pub(crate) fn write(
    folder: &Path,
    files: &[(&str, String)],
    apiloom: Option<&Path>,
) -> io::Result<()> {
    for (path, text) in files {
        let file = folder.join(path);
        fs::create_dir_all(file.parent().unwrap_or(folder))?;
        fs::write(file, text)?;
    }
    fs::write(folder.join(".gitignore"), "/target\n")?;
    match apiloom.and_then(Path::parent) {
        Some(clone) => write_build_files(folder, clone),
        None => Ok(()),
    }
}

/// Writes the files by which cargo builds as in the clone.
fn write_build_files(folder: &Path, clone: &Path) -> io::Result<()> {
    // The versions of dependencies with which this apiloom was tested.
    let lock = clone.join("Cargo.lock");
    if lock.is_file() {
        fs::copy(lock, folder.join("Cargo.lock"))?;
    }
    if clone.join(cargo_config::FILE).is_file() {
        let file = folder.join(cargo_config::FILE);
        fs::create_dir_all(file.parent().unwrap_or(folder))?;
        fs::write(file, cargo_config::text(clone, &relative(clone, folder))?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_from_folder_to_folder() {
        let check = |to, from, expected: &str| {
            assert_eq!(relative(Path::new(to), Path::new(from)), expected);
        };
        check("/a/apiloom/runtime", "/a/zoo", "../apiloom/runtime");
        check("/a/apiloom/runtime", "/a/apiloom/x/zoo", "../../runtime");
        check("/a/b", "/c/d e", "../../a/b");
    }

    #[test]
    fn a_release_is_named_by_its_version() {
        let version = concat!("version = \"", env!("CARGO_PKG_VERSION"), "\"");
        assert_eq!(dependency(None, Path::new("/a/zoo")), version);
        let path = dependency(Some(Path::new("/a/\"b\"/runtime")), Path::new("/a/zoo"));
        assert_eq!(path, r#"path = "../\"b\"/runtime""#);
    }

    #[test]
    fn this_checkout_is_found() {
        let own = own_checkout().expect("the tests are run in a checkout");
        assert!(own.ends_with("runtime"), "{}", own.display());
        assert_eq!(checkout(&own), Some(own.clone()));
        assert_eq!(checkout_around(&own.join("src/zoo")), Some(own));
        assert_eq!(checkout(Path::new("/")), None);
    }
}
