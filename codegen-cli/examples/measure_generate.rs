//! Benchmark of phase 1 on a large package: 100 kinds of 20 fields in 2 versions.
//!
//! `cargo run --release -p apiloom-cli --example measure_generate [KINDS [FIELDS]]` prints a line per run: the first
//! one writes every file, the others find them fresh.

mod large;

use std::error::Error;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Instant;

use apiloom_cli::{Console, execute};
use large::{Package, VERSIONS};

const RUNS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let mut numbers = std::env::args()
        .skip(1)
        .map(|number| number.parse::<usize>());
    let kinds = numbers.next().transpose()?.unwrap_or(100);
    let fields = numbers.next().transpose()?.unwrap_or(20);
    let dir = tempfile::tempdir()?;
    let package = Package {
        kinds,
        fields,
        shapes: &[("len(max = 63)", "Option<String>")],
        dependencies: "apiloom = \"0.1\"",
        plain: false,
    };
    package.write(dir.path())?;
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
