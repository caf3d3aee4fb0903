//! `apiloom generate --client-crate DIR`: the clients of a package as a package of their own, which depends on it.
//!
//! Its `Cargo.toml` and `src/lib.rs` are written if they do not exist, and then belong to the user; the rest is generated.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::console::{Console, Failure};
use crate::package::Package;

/// Writes what belongs to the user, where it does not exist; without `writes` it is reported. Returns the name of the package.
pub(crate) fn begin(
    package: &Package,
    dir: &Path,
    writes: bool,
    console: &mut Console<'_>,
) -> Result<String, Failure> {
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
    Ok(name)
}

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
    Ok(format!(
        "[package]\nname = {}\nversion = \"0.1.0\"\nedition = \"2024\"\npublish = false\n\n[dependencies]\n\
         apiloom = {{ {apiloom}, default-features = false, features = [\"client\"] }}\n\
         {} = {{ path = {} }}\n",
        text(name),
        package.name,
        text(&types),
    ))
}

/// A string of TOML; strings of JSON are valid there too.
fn text(value: &str) -> String {
    serde_json::Value::from(value).to_string()
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
