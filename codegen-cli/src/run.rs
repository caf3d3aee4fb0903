//! `apiloom run`: generates, builds once, generates schemas from that build, then runs the server.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

use crate::console::{Console, Failure};
use crate::driver::{Generation, Mode};
use crate::flags::Run;
use crate::package::Package;
use crate::protoc;
use crate::source_model;
use crate::{build, cargo};

/// The server's flag for its data folder.
const DATA_DIR: &str = "--data-dir";

/// Environment variables with settings of a server that has them, and what they are if the user has not set them: how users are authorized,
/// and who issues the tokens of service accounts.
const SETTINGS: [(&str, &str); 2] = [
    ("APILOOM_AUTHORIZATION_MODE", "RBAC"),
    (
        "APILOOM_SERVICE_ACCOUNT_ISSUER",
        "https://kubernetes.default.svc.cluster.local",
    ),
];

/// The feature of apiloom that needs protoc at build time.
const ETCD: &str = "etcd";

/// Generates, builds and serves; returns only if the server could not be started or, without `exec`, has ended.
pub(crate) fn run(flags: &Run, console: &mut Console<'_>) -> Result<(), Failure> {
    let package = Package::locate(&flags.target.path)?;
    let server_package = package.server()?;
    let model = source_model::load_or_tell(&package, console)?;
    let mut generation = Generation::begin(&package, Mode::Write)?;
    console.phase(format_args!("generating code of {}", package.name));
    generation.source(&model, console)?;
    let mut options = cargo::Options {
        release: flags.release,
        target_dir: flags.target_dir.clone(),
        ..cargo::Options::default()
    };
    for asked in &flags.features {
        options.features.push(server_package.feature(asked));
        if asked.rsplit('/').next() == Some(ETCD) {
            let protoc = protoc::find(&package.target_dir)?;
            let variable = protoc.map(|protoc| (protoc::VARIABLE, protoc));
            options.environment.extend(variable);
        }
    }
    let server = build::build(&package, &options, console)?;
    generation.schema(&server, console)?;
    let target_dir = flags.target_dir.as_ref().unwrap_or(&package.target_dir);
    let default = target_dir.join("apiloom").join(&package.name);
    console.phase(format_args!("starting {}", server_package.bin));
    let mut command = Command::new(&server);
    command.args(with_data_dir(&flags.server, &default));
    set_defaults(&mut command, |name| std::env::var_os(name).is_some());
    serve(&mut command, &server)
}

/// Sets what the user has not set.
fn set_defaults(command: &mut Command, is_given: impl Fn(&str) -> bool) {
    command.envs(SETTINGS.into_iter().filter(|(name, _)| !is_given(name)));
}

/// Adds a data folder below cargo's target folder to the flags if they have none, behind them, since a subcommand comes first.
fn with_data_dir(flags: &[OsString], default: &Path) -> Vec<OsString> {
    let prefix = format!("{DATA_DIR}=");
    let names_one = |flag: &OsString| {
        flag == OsStr::new(DATA_DIR) || flag.to_string_lossy().starts_with(prefix.as_str())
    };
    let mut all = flags.to_vec();
    if !flags.iter().any(names_one) {
        all.extend([OsString::from(DATA_DIR), default.as_os_str().to_owned()]);
    }
    all
}

/// Replaces this process by the server's, so that signals and the exit code are the server's own.
#[cfg(unix)]
pub(crate) fn serve(command: &mut Command, server: &Path) -> Result<(), Failure> {
    use std::os::unix::process::CommandExt;
    let error = command.exec();
    Err(format!("cannot start {}: {error}", server.display()).into())
}

/// Waits for the server. Ctrl-C reaches both processes, and only the server handles it.
#[cfg(not(unix))]
pub(crate) fn serve(command: &mut Command, server: &Path) -> Result<(), Failure> {
    let status = command
        .status()
        .map_err(|error| format!("cannot start {}: {error}", server.display()))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    if status.success() {
        Ok(())
    } else {
        Err(Failure::Ended(code.unwrap_or(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::Workspace;

    fn check(flags: &[&str], expected: &[&str]) {
        let flags: Vec<OsString> = flags.iter().map(OsString::from).collect();
        assert_eq!(
            with_data_dir(&flags, Path::new("target/apiloom/wardle")),
            expected
        );
    }

    #[test]
    fn data_dir_defaults_to_cargos_folder() {
        let target = "target/apiloom/wardle";
        check(&["-v", "2"], &["-v", "2", "--data-dir", target]);
        check(&["print-routes"], &["print-routes", "--data-dir", target]);
    }

    #[test]
    fn users_have_roles_and_service_accounts_tokens_unless_it_is_said() {
        let check = |given: &[&str], expected: &[&str]| {
            let mut command = Command::new("server");
            set_defaults(&mut command, |name| given.contains(&name));
            let set: Vec<_> = command.get_envs().map(|(name, _)| name).collect();
            assert_eq!(set, expected);
        };
        let (mode, issuer) = (SETTINGS[0].0, SETTINGS[1].0);
        check(&[], &[mode, issuer]);
        check(&[mode], &[issuer]);
        check(&[mode, issuer], &[]);
    }

    #[test]
    fn features_that_the_server_does_not_have_are_apilooms() {
        let server = crate::package::Server {
            manifest: "Cargo.toml".into(),
            dir: String::new(),
            bin: "server".to_owned(),
            features: vec!["own".to_owned()],
            workspace: Workspace::default(),
        };
        let check = |asked, expected| assert_eq!(server.feature(asked), expected);
        check("own", "own");
        check("etcd", "apiloom/etcd");
        check("other/feature", "other/feature");
    }

    #[test]
    fn data_dir_of_the_user_stays() {
        check(&["--data-dir", "x"], &["--data-dir", "x"]);
        check(&["--data-dir=x"], &["--data-dir=x"]);
    }
}
