//! `.cargo/config.toml` of packages outside of apiloom's workspace: the environment and the profiles of that workspace. With
//! them cargo finds in the package what `apiloom run` compiled for it; with others it compiles every crate again.

use std::fs;
use std::io;
use std::path::Path;

use crate::toml;

/// The file, in the folder of a workspace.
pub(crate) const FILE: &str = ".cargo/config.toml";

/// The headers of the tables with the environment of builds.
pub(crate) const ENVIRONMENT: &str = "[env";

/// The headers of the tables with profiles.
pub(crate) const PROFILES: &str = "[profile";

const HEAD: &str = "\
# How cargo compiles here, as in the clone of apiloom: what `apiloom run` has compiled is not compiled again by `cargo build` and
# `cargo test`. Profiles of this file replace those of Cargo.toml.
";

/// The text of the file for a package, from whose folder this path leads to the clone.
pub(crate) fn text(clone: &Path, path: &str) -> io::Result<String> {
    let environment = toml::tables(&fs::read_to_string(clone.join(FILE))?, ENVIRONMENT);
    let manifest = fs::read_to_string(clone.join("Cargo.toml"))?;
    let profiles = toml::tables(&manifest, PROFILES);
    let environment: String = environment
        .lines()
        .map(|line| from_here(line, path) + "\n")
        .collect();
    let texts = [environment, profiles];
    let texts = texts.iter().map(|text| text.trim_end());
    Ok(texts.fold(HEAD.to_owned(), |all, text| all + "\n" + text + "\n"))
}

/// A line with a variable; if its value is a path in the clone, it is that from the package.
fn from_here(line: &str, path: &str) -> String {
    const VALUE: &str = "value = \"";
    if !line.contains("relative = true") {
        return line.to_owned();
    }
    let start = toml::string(&format!("{path}/"));
    let start = start.trim_end_matches('"');
    line.replace(VALUE, &format!("value = {start}"))
}

/// Whether a workspace has tables with these headers of its own, in its manifest or in cargo's configuration.
pub(crate) fn has_own(root: &Path, headers: &str) -> bool {
    ["Cargo.toml", FILE].iter().any(|file| {
        let text = fs::read_to_string(root.join(file)).unwrap_or_default();
        !toml::tables(&text, headers).is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_clone_are_found_from_the_package() {
        let check = |line, expected| assert_eq!(from_here(line, "../a\"b"), expected);
        check("A = \"1\"", "A = \"1\"");
        check(
            "A = { value = \"x/y\", relative = true }",
            "A = { value = \"../a\\\"b/x/y\", relative = true }",
        );
    }

    #[test]
    fn packages_have_what_this_workspace_has() {
        let clone = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .expect("the clone");
        let package = tempfile::tempdir().expect("a temporary folder");
        for headers in [ENVIRONMENT, PROFILES] {
            assert!(!has_own(package.path(), headers));
        }
        let text = text(clone, "../apiloom").expect("the files of the clone");
        let file = package.path().join(FILE);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(&file, &text).expect("a file");
        for headers in [ENVIRONMENT, PROFILES] {
            assert!(has_own(package.path(), headers), "{text}");
        }
        let manifest = fs::read_to_string(clone.join("Cargo.toml")).expect("a manifest");
        let profiles = |text: &str| toml::tables(text, PROFILES).trim_end().to_owned();
        assert_eq!(profiles(&text), profiles(&manifest));
        assert!(text.contains("\"../apiloom/.cargo/protoc\""), "{text}");
    }
}
