//! Provides protoc, which building a server with the feature `etcd` needs and few machines have.
//!
//! The crate protoc-bin-vendored contains it for every common platform. A package below the target folder depends on
//! it, so that cargo downloads it only for users of the feature.

use std::env::consts;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::MetadataCommand;

use crate::console::Failure;

/// The environment variable that the build script reads.
pub(crate) const VARIABLE: &str = "PROTOC";

const MANIFEST: &str = r#"[package]
name = "apiloom-protoc"
edition = "2024"

[workspace]

[dependencies]
protoc-bin-vendored = "=3.3.0"
"#;

/// The protoc to name in [`VARIABLE`]; `None` if the variable is set or PATH has a protoc.
pub(crate) fn find(target_dir: &Path) -> Result<Option<PathBuf>, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::var_os(VARIABLE).is_some() || is_on(&path) {
        return Ok(None);
    }
    let platform = platform(consts::OS, consts::ARCH).ok_or_else(|| {
        format!(
            "the feature etcd needs protoc: install it and name it in {VARIABLE} (none is known for {} on {})",
            consts::OS,
            consts::ARCH
        )
    })?;
    let dir = target_dir.join("apiloom").join("protoc");
    download(&dir, platform).map(Some).map_err(|why| {
        format!("the feature etcd needs protoc: install it and name it in {VARIABLE} (it could not be downloaded: {why})").into()
    })
}

fn is_on(path: &OsStr) -> bool {
    let name = format!("protoc{}", consts::EXE_SUFFIX);
    std::env::split_paths(path).any(|dir| dir.join(&name).is_file())
}

/// The platform suffix of the crate's name.
fn platform(os: &str, arch: &str) -> Option<&'static str> {
    Some(match (os, arch) {
        ("linux", "x86_64") => "linux-x86_64",
        ("linux", "x86") => "linux-x86_32",
        ("linux", "aarch64") => "linux-aarch_64",
        ("linux", "powerpc64") => "linux-ppcle_64",
        ("linux", "s390x") => "linux-s390_64",
        ("macos", "x86_64") => "macos-x86_64",
        ("macos", "aarch64") => "macos-aarch_64",
        ("windows", _) => "win32",
        _ => return None,
    })
}

fn download(dir: &Path, platform: &str) -> Result<PathBuf, String> {
    let written = fs::create_dir_all(dir.join("src"))
        .and_then(|()| fs::write(dir.join("src/lib.rs"), ""))
        .and_then(|()| fs::write(dir.join("Cargo.toml"), MANIFEST));
    written.map_err(|error| format!("cannot write {}: {error}", dir.display()))?;
    let metadata = MetadataCommand::new()
        .manifest_path(dir.join("Cargo.toml"))
        .exec()
        .map_err(|error| error.to_string())?;
    let name = format!("protoc-bin-vendored-{platform}");
    let package = metadata
        .packages
        .iter()
        .find(|package| package.name.as_str() == name)
        .ok_or_else(|| format!("there is no crate {name}"))?;
    let binary = format!("protoc{}", consts::EXE_SUFFIX);
    let manifest = package.manifest_path.as_std_path();
    Ok(manifest.with_file_name("bin").join(binary))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protoc_on_the_path_is_found() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_on(dir.path().as_os_str()));
        fs::write(dir.path().join(format!("protoc{}", consts::EXE_SUFFIX)), "").unwrap();
        let path = std::env::join_paths([Path::new("/nowhere"), dir.path()]).unwrap();
        assert!(is_on(&path));
    }

    #[test]
    fn this_platform_has_a_protoc() {
        assert!(platform(consts::OS, consts::ARCH).is_some());
        assert_eq!(platform("linux", "riscv64"), None);
    }
}
