//! Cost of a large package: CPU time and memory of rustc, size of the library, time and memory of its server's start;
//! beside the same structs with derives of serde and schemars alone.
//!
//! `cargo run --release -p apiloom-benches --example measure_package [KINDS [FIELDS [DIR]]]` writes packages of kinds in 2
//! versions and builds them in DIR, with the dev profile of this workspace. Dependencies are built first and do not
//! count. Reads `/proc`, so Linux only.

mod large;

use std::error::Error;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use large::{Package, generate};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Types and rules as they occur in APIs.
const SHAPES: [(&str, &str); 6] = [
    ("len(max = 63)", "Option<String>"),
    ("min = 0, max = 65535", "Option<i32>"),
    ("", "Option<bool>"),
    ("items(max = 16), each(len(max = 63))", "Vec<String>"),
    ("len(min = 1, max = 253), pattern = \"^[a-z]+$\"", "String"),
    ("", "BTreeMap<String, String>"),
];

/// How often the memory of rustc is read; its peak is kept by the kernel until it ends.
const INTERVAL: Duration = Duration::from_millis(10);
const STARTS: usize = 5;
const MIB: f64 = 1024.0 * 1024.0;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| match arguments.next() {
        Some(text) => text.parse::<usize>(),
        None => Ok(default),
    };
    let (kinds, fields) = (number(30)?, number(30)?);
    let apiloom = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime");
    let workspace = fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))?;
    let dir = arguments
        .next()
        .map_or_else(|| workspace.join("target/large"), PathBuf::from);
    let mut out = io::stdout();
    for plain in [true, false] {
        let dependencies = if plain {
            "serde = { version = \"1\", features = [\"derive\"] }\nschemars = { version = \"1.2\", default-features = false, features = [\"derive\", \"std\"] }".to_owned()
        } else {
            format!("apiloom = {{ path = {:?} }}", fs::canonicalize(&apiloom)?)
        };
        let name = if plain { "plain" } else { "apiloom" };
        let package = dir.join(name);
        if package.exists() {
            fs::remove_dir_all(&package)?;
        }
        let mut content = Package {
            kinds: 0,
            fields,
            shapes: &SHAPES,
            dependencies: &dependencies,
            plain,
        };
        let build = Build {
            package: &package,
            target: dir.join("target"),
            workspace: &workspace,
        };
        content.write(&package)?;
        fs::copy(workspace.join("Cargo.lock"), package.join("Cargo.lock"))?;
        // Without kinds the generator has nothing to do, and the module that it writes must exist.
        if !plain {
            fs::create_dir_all(package.join("src/generated"))?;
            fs::write(package.join("src/generated/mod.rs"), "")?;
        }
        build.library()?;
        if !plain {
            fs::remove_dir_all(package.join("src/generated"))?;
        }
        content.kinds = kinds;
        content.write(&package)?;
        if !plain {
            generate(&package, &["--fast"])?;
        }
        let cost = build.library()?;
        writeln!(
            out,
            "{name}: {kinds} kinds of {fields} fields in {} versions: {:.1} CPU s, {:.0} MiB of rustc, library {:.1} MB",
            large::VERSIONS.len(),
            cost.cpu_s,
            cost.peak_mib,
            build.library_bytes()? as f64 / 1e6,
        )?;
        if !plain {
            build.cargo(&["build", "--bin", "large-server"]).status()?;
            let server = build.target.join("debug/large-server");
            writeln!(
                out,
                "binary {:.1} MB",
                fs::metadata(&server)?.len() as f64 / 1e6
            )?;
            start(&server, &dir.join("data"), &mut out)?;
            let target = build.target.to_string_lossy().into_owned();
            generate(&package, &["--target-dir", &target])?;
            let files = bytes_below(&package.join("generated"))?
                + bytes_below(&package.join("src/generated"))?;
            writeln!(out, "generated files {:.1} MB", files as f64 / 1e6)?;
        }
    }
    Ok(())
}

/// What a build has cost.
struct Cost {
    cpu_s: f64,
    peak_mib: f64,
}

struct Build<'a> {
    package: &'a Path,
    target: PathBuf,
    workspace: &'a Path,
}

impl Build<'_> {
    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO"));
        command
            .args(arguments)
            .args([
                "--quiet",
                "--config",
                "profile.dev.debug='line-tables-only'",
            ])
            .arg("--config")
            .arg(self.workspace.join(".cargo/config.toml"))
            .arg("--manifest-path")
            .arg(self.package.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(&self.target)
            .env("CARGO_INCREMENTAL", "0");
        command
    }

    /// Builds the library alone.
    fn library(&self) -> Outcome<Cost> {
        let before = children_cpu_s()?;
        let mut child = self.cargo(&["build", "--lib"]).spawn()?;
        let mut peak_kib = 0;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            peak_kib = peak_kib.max(children_peak_kib(child.id()));
            std::thread::sleep(INTERVAL);
        };
        if !status.success() {
            return Err("the build failed".into());
        }
        Ok(Cost {
            cpu_s: children_cpu_s()? - before,
            peak_mib: peak_kib as f64 / 1024.0,
        })
    }

    fn library_bytes(&self) -> io::Result<u64> {
        Ok(fs::metadata(self.target.join("debug/liblarge.rlib"))?.len())
    }
}

/// CPU time of all ended children of this process, and of theirs.
fn children_cpu_s() -> Outcome<f64> {
    /// Clock ticks in `/proc` are hundredths of a second on every Linux that Rust runs on.
    const TICKS: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, after) = stat.rsplit_once(')').ok_or("no process state")?;
    let times = after.split_whitespace().skip(13).take(2);
    let ticks: u64 = times.map(str::parse::<u64>).sum::<Result<_, _>>()?;
    Ok(ticks as f64 / TICKS)
}

/// The largest peak of resident memory among the children of a process.
fn children_peak_kib(parent: u32) -> u64 {
    let parent = parent.to_string();
    let Ok(processes) = fs::read_dir("/proc") else {
        return 0;
    };
    let peak = |status: String| {
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name))?;
            line.split_whitespace().nth(1).map(str::to_owned)
        };
        if field("PPid:")? == parent {
            field("VmHWM:")?.parse::<u64>().ok()
        } else {
            None
        }
    };
    processes
        .filter_map(Result::ok)
        .filter_map(|entry| fs::read_to_string(entry.path().join("status")).ok())
        .filter_map(peak)
        .max()
        .unwrap_or_default()
}

/// Starts the server a few times over one folder; prints the time until it is ready and what is resident then.
fn start(server: &Path, data: &Path, out: &mut impl io::Write) -> Outcome<()> {
    for run in 1..=STARTS {
        let begun = Instant::now();
        let mut child = Server(
            Command::new(server)
                .args(["--secure-port", "0", "--data-dir"])
                .arg(data)
                .stdout(Stdio::piped())
                .spawn()?,
        );
        let stdout = child.0.stdout.take().ok_or("no output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        if !line.contains("ready") {
            return Err("the server did not start".into());
        }
        let took = begun.elapsed();
        let status = fs::read_to_string(format!("/proc/{}/status", child.0.id()))?;
        let resident = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok())
            .ok_or("no resident memory")?;
        writeln!(
            out,
            "start {run}: ready in {:.0} ms, {:.1} MiB resident",
            took.as_secs_f64() * 1e3,
            resident * 1024.0 / MIB,
        )?;
    }
    Ok(())
}

/// A server that ends with its measurement.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended already when this fails.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn bytes_below(dir: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let data = entry.metadata()?;
        bytes += if data.is_dir() {
            bytes_below(&entry.path())?
        } else {
            data.len()
        };
    }
    Ok(bytes)
}
