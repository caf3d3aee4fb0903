//! Benchmark of phase 1 on a large package: 100 kinds of 20 fields in 2 versions.
//!
//! `cargo run --release -p apiloom-cli --example measure_generate [KINDS [FIELDS]]` prints a line per run: the first
//! one writes every file, the others find them fresh.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Instant;

use apiloom_cli::{Console, execute};

const RUNS: usize = 5;
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

const MANIFEST: &str = r#"
[package]
name = "large"
version = "0.1.0"
edition = "2024"

[[bin]]
name = "large-server"
path = "generated/main.rs"

[dependencies]
apiloom = "0.1"

[workspace]
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let mut numbers = std::env::args()
        .skip(1)
        .map(|number| number.parse::<usize>());
    let kinds = numbers.next().transpose()?.unwrap_or(100);
    let fields = numbers.next().transpose()?.unwrap_or(20);
    let dir = tempfile::tempdir()?;
    write_package(dir.path(), kinds, fields)?;
    let mut out = io::stdout();
    for run in 1..=RUNS {
        let start = Instant::now();
        generate(dir.path())?;
        let took = start.elapsed();
        writeln!(
            out,
            "run {run}: {} kinds of {fields} fields in {took:.1?}",
            kinds * VERSIONS.len()
        )?;
    }
    Ok(())
}

fn generate(package: &Path) -> Result<(), Box<dyn Error>> {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let arguments = [
        "apiloom".into(),
        "generate".into(),
        "--fast".into(),
        package.as_os_str().to_owned(),
    ];
    let code = execute(
        arguments,
        &mut Console {
            out: &mut out,
            err: &mut err,
            terminal: false,
        },
    );
    if code == 0 {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&err).into())
    }
}

/// Writes one file per kind and version, as users would.
fn write_package(dir: &Path, kinds: usize, fields: usize) -> io::Result<()> {
    fs::write(dir.join("Cargo.toml"), MANIFEST)?;
    fs::create_dir(dir.join("src"))?;
    let mut root = String::from(
        "pub mod generated;\napiloom::group! { name = \"large.example.com\", versions = [v1, v1beta1] }\n",
    );
    for version in VERSIONS {
        let _ = writeln!(root, "pub mod {version};");
        fs::create_dir(dir.join("src").join(version))?;
        let modules: String = (0..kinds)
            .map(|kind| format!("pub mod kind{kind};\n"))
            .collect();
        fs::write(dir.join("src").join(version).join("mod.rs"), modules)?;
        for kind in 0..kinds {
            let path = dir.join("src").join(version).join(format!("kind{kind}.rs"));
            fs::write(path, kind_source(version, kind, fields))?;
        }
    }
    fs::write(dir.join("src/lib.rs"), root)
}

fn kind_source(version: &str, kind: usize, fields: usize) -> String {
    let role = match version {
        "v1" => "hub, storage".to_owned(),
        _ => format!("spoke_of = crate::v1::kind{kind}::Kind{kind}"),
    };
    let mut text = format!(
        "use apiloom::prelude::*;\n\n/// Kind{kind} is one of many.\n\
         #[apiloom::resource(group = \"large.example.com\", version = \"{version}\", namespaced, status, {role}, \
         printcolumn(name = \"First\", path = spec.field0))]\n\
         pub struct Kind{kind} {{\n    pub metadata: ObjectMeta,\n    pub spec: Kind{kind}Spec,\n    pub status: Option<Kind{kind}Status>,\n}}\n\n\
         /// Kind{kind}Status is empty.\n#[apiloom::api]\npub struct Kind{kind}Status {{}}\n\n\
         /// Kind{kind}Spec has fields.\n#[apiloom::api]\npub struct Kind{kind}Spec {{\n"
    );
    for field in 0..fields {
        let _ = writeln!(
            text,
            "    /// Field {field}.\n    #[api(len(max = 63))]\n    pub field{field}: Option<String>,"
        );
    }
    text.push_str("}\n");
    text
}
