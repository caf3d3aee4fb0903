//! `apiloom generate --client-crate DIR`: the clients of a package as a package of their own, which depends on it.
//!
//! Its `Cargo.toml` and `src/lib.rs` are written if they do not exist, and then belong to the user; the rest is generated. Which
//! modules there are follows from the cargo features in that `Cargo.toml`.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::console::{Console, Failure};
use crate::package::Package;
use crate::toml;
use crate::toml::string as text;

/// The cargo features of the package on which its generated modules depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientFeatures {
    /// `fake`: clients with a server of their own, for tests.
    pub(crate) fake: bool,
    /// `kube`: types for kube-rs.
    pub(crate) kube: bool,
}

impl ClientFeatures {
    /// Those of a manifest. It is not given to cargo, which reads no new package of a workspace before it is a member.
    fn of(manifest: &str) -> Self {
        let features = toml::tables(manifest, "[features]");
        let has = |name: &str| {
            features.lines().any(|line| {
                let key = line.split_once('=').map_or("", |(key, _)| key.trim());
                key.trim_matches(['"', '\'']) == name
            })
        };
        Self {
            fake: has("fake"),
            kube: has("kube"),
        }
    }
}

/// Writes what belongs to the user, where it does not exist; without `writes` it is reported. Returns the name of the package, and its
/// features.
pub(crate) fn begin(
    package: &Package,
    dir: &Path,
    writes: bool,
    console: &mut Console<'_>,
) -> Result<(String, ClientFeatures), Failure> {
    let name = format!("{}-client", package.name);
    let files = [
        ("Cargo.toml", manifest(package, dir, &name)?),
        ("src/lib.rs", library(&package.name)),
    ];
    for (file, text) in files {
        let path = dir.join(file);
        if path.exists() {
            continue;
        }
        if !writes {
            return Err(format!(
                "{} does not exist\n  help: run: apiloom generate {} --client-crate {}",
                path.display(),
                package.dir.display(),
                dir.display()
            )
            .into());
        }
        let fail = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(fail)?;
        }
        fs::write(&path, text).map_err(fail)?;
        console.say(format_args!(
            "{}: written; later runs leave it as it is",
            path.display()
        ));
    }
    let path = dir.join("Cargo.toml");
    let manifest = fs::read_to_string(&path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let mut features = ClientFeatures::of(&manifest);
    if features.fake && package.server().is_err() {
        let note = format!(
            "warning: {}: the feature `fake` has no module: package `{}` has no server",
            path.display(),
            package.name
        );
        console.note(note);
        features.fake = false;
    }
    Ok((name, features))
}

/// The dependency on kube-rs.
const KUBE: &str = "kube = { version = \"5\", default-features = false, optional = true }\n";

fn library(package: &str) -> String {
    format!(
        "//! Clients of the kinds of the package {package}.\n\n#[rustfmt::skip]\npub mod generated;\n\npub use generated::*;\n"
    )
}

fn manifest(package: &Package, dir: &Path, name: &str) -> Result<String, String> {
    let types = relative(dir, &package.dir)?;
    let apiloom = match &package.apiloom {
        Some(folder) => format!("path = {}", text(&relative(dir, folder)?)),
        None => format!("version = {}", text(&package.apiloom_version)),
    };
    let mut manifest = format!(
        "[package]\nname = {}\nversion = \"0.1.0\"\nedition = \"2024\"\npublish = false\n\n",
        text(name)
    );
    let mut features = String::new();
    if package.server().is_ok() {
        features.push_str(
            "# Clients with a server of their own, for tests: the module `fake`.\nfake = [\"apiloom/testing\"]\n",
        );
    }
    if package.kube {
        features.push_str(
            "# Types for programs with kube-rs: the module `kube`.\nkube = [\"dep:kube\"]\n",
        );
    }
    if !features.is_empty() {
        manifest.push_str(&format!("[features]\n{features}\n"));
    }
    manifest.push_str(&format!(
        "[dependencies]\napiloom = {{ {apiloom}, default-features = false, features = [\"client\"] }}\n\
         {} = {{ path = {} }}\n",
        package.name,
        text(&types),
    ));
    if package.kube {
        manifest.push_str(KUBE);
    }
    Ok(manifest)
}

/// The path from one folder to another, with `/`. The first may not exist yet.
fn relative(from: &Path, to: &Path) -> Result<String, String> {
    let (from, to) = (absolute(from)?, absolute(to)?);
    let mut from = from.components().peekable();
    let mut to = to.components().peekable();
    while let (Some(a), Some(b)) = (from.peek(), to.peek()) {
        if a != b {
            break;
        }
        from.next();
        to.next();
    }
    let up = from.map(|_| "..".to_owned());
    let down = to.map(|part| part.as_os_str().to_string_lossy().into_owned());
    Ok(up.chain(down).collect::<Vec<_>>().join("/"))
}

/// The absolute path without `..`, of a folder whose last parts may not exist.
fn absolute(path: &Path) -> Result<PathBuf, String> {
    let fail = |error: std::io::Error| format!("cannot find {}: {error}", path.display());
    let path = std::path::absolute(path).map_err(fail)?;
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
        // Links are followed, so that both paths are spelled alike.
        if let Ok(real) = plain.canonicalize() {
            plain = real;
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_found_in_their_table() {
        let check = |manifest: &str, fake: bool, kube: bool| {
            let expected = ClientFeatures { fake, kube };
            assert_eq!(ClientFeatures::of(manifest), expected, "{manifest}");
        };
        check("[package]\nname = \"fake\"\n", false, false);
        check(
            "[features]\nfake = []\n[dependencies]\nkube = \"5\"",
            true,
            false,
        );
        check(
            "[dependencies]\nfake = \"1\"\n[features]\n\"kube\"=[\n\"dep:kube\"]",
            false,
            true,
        );
        check(
            "[features] # own\n# fake = []\nkube = [\"fake\"]",
            false,
            true,
        );
    }

    #[test]
    fn paths_lead_from_one_folder_to_another() {
        let check = |from: &str, to: &str, expected: &str| {
            assert_eq!(
                relative(Path::new(from), Path::new(to)),
                Ok(expected.to_owned())
            );
        };
        check("/x/a/client", "/x/a", "..");
        check("/x/client", "/x/api", "../api");
        check("/x/client/../b", "/x/api/./v", "../api/v");
    }
}
