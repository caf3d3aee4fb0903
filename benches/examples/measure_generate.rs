//! Benchmark of phase 1 on a large package: 100 kinds of 20 fields in 2 versions.
//!
//! `cargo run --release -p apiloom-benches --example measure_generate [KINDS [FIELDS]]` prints a line per run: the first
//! one writes every file, the others find them fresh.

mod large;

use std::error::Error;
use std::io::{self, Write as _};
use std::time::Instant;

use large::{Package, VERSIONS, generate};

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
        generate(dir.path(), &["--fast"])?;
        let took = start.elapsed();
        writeln!(
            out,
            "run {run}: {} kinds of {fields} fields in {took:.1?}",
            kinds * VERSIONS.len()
        )?;
    }
    Ok(())
}
