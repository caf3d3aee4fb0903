//! `apiloom.lock`: the number that each Protobuf field has, and those that removed fields had.
//!
//! A number belongs to its field for ever: clients of an older release read it as that field. The file is committed beside
//! `Cargo.toml`, and only this module reads and writes it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use apiloom_meta::kind::ProtoFile;

/// The name of the file, in the package.
pub(crate) const LOCK: &str = "apiloom.lock";

const HEAD: &str = "\
# The numbers of Protobuf fields, also of those that were removed: a number is never given to another field.
# Written by `apiloom generate`; commit it. Remove the line of a field that was never released to give its number again.
";

/// What marks the entry of a field that was removed.
const REMOVED: &str = "removed ";

/// The numbers of all messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// By the name of the message with its package.
    messages: BTreeMap<String, BTreeMap<u32, Entry>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    is_removed: bool,
    /// Label and type.
    field_type: String,
    name: String,
}

impl Numbers {
    /// Reads the file of a package; a missing one is empty.
    pub(crate) fn read(package: &Path) -> Result<Numbers, String> {
        let path = package.join(LOCK);
        match fs::read_to_string(&path) {
            Ok(text) => Numbers::parse(&text).map_err(|(line, why)| {
                format!(
                    "{}:{line}: {why}\n  help: restore the file from version control: it is the only record of numbers that fields had",
                    path.display()
                )
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Numbers::default()),
            Err(error) => Err(format!("cannot read {}: {error}", path.display())),
        }
    }

    /// The number of the line that cannot be read, and why.
    fn parse(text: &str) -> Result<Numbers, (usize, &'static str)> {
        let mut numbers = Numbers::default();
        let mut message = None;
        for (at, line) in text.lines().enumerate() {
            let fail = |why| Err((at + 1, why));
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(name) = line
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'))
            {
                message = Some(numbers.messages.entry(name.to_owned()).or_default());
                continue;
            }
            let Some((number, entry)) = Entry::parse(line) else {
                return fail("this is no line of numbers, such as `1 = \"optional string name\"`");
            };
            let Some(message) = &mut message else {
                return fail("the line stands before the first message");
            };
            if message.insert(number, entry).is_some() {
                return fail("the number is given twice");
            }
        }
        Ok(numbers)
    }

    /// The content of the file.
    pub(crate) fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        for (message, fields) in &self.messages {
            let _ = write!(text, "\n[{message}]\n");
            for (number, entry) in fields {
                let removed = if entry.is_removed { REMOVED } else { "" };
                let Entry {
                    field_type, name, ..
                } = entry;
                let _ = writeln!(text, "{number} = \"{removed}{field_type} {name}\"");
            }
        }
        text
    }

    /// Whether there is nothing to remember.
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The numbers after these files were generated.
    ///
    /// # Errors
    /// Fields that have the number of another one, or another number or type than before.
    pub(crate) fn after(&self, files: &BTreeMap<String, ProtoFile>) -> Result<Numbers, String> {
        let mut problems = Vec::new();
        let mut next = self.clone();
        for fields in next.messages.values_mut() {
            fields
                .values_mut()
                .for_each(|entry| entry.is_removed = true);
        }
        for file in own(files) {
            for (name, message) in &file.messages {
                let name = format!("{}.{name}", file.package);
                let no_fields = BTreeMap::new();
                let earlier = self.messages.get(&name).unwrap_or(&no_fields);
                let fields = next.messages.entry(name.clone()).or_default();
                for (number, field) in &message.fields {
                    let entry = Entry {
                        is_removed: false,
                        field_type: field.field_type.clone(),
                        name: field.name.clone(),
                    };
                    problems.extend(entry.problem(*number, earlier).map(|why| {
                        format!("{name}: {why}\n  help: if no release has the earlier field, remove its line from {LOCK}")
                    }));
                    fields.insert(*number, entry);
                }
            }
        }
        next.messages.retain(|_, fields| !fields.is_empty());
        if problems.is_empty() {
            Ok(next)
        } else {
            Err(problems.join("\n"))
        }
    }

    /// Reserves the numbers and names of removed fields in the files.
    pub(crate) fn reserve(&self, files: &mut BTreeMap<String, ProtoFile>) {
        for file in files.values_mut() {
            for (name, message) in &mut file.messages {
                let fields = self.messages.get(&format!("{}.{name}", file.package));
                let fields = fields.into_iter().flatten();
                for (number, entry) in fields.filter(|(_, entry)| entry.is_removed) {
                    message.reserved.insert(*number);
                    message.reserved_names.insert(entry.name.clone());
                }
            }
        }
    }

    /// Writes the file of a package.
    pub(crate) fn write(&self, package: &Path) -> Result<(), String> {
        let path = package.join(LOCK);
        fs::write(&path, self.text())
            .map_err(|error| format!("cannot write {}: {error}", path.display()))
    }
}

/// The files of the package's kinds, without those of Kubernetes.
fn own(files: &BTreeMap<String, ProtoFile>) -> impl Iterator<Item = &ProtoFile> {
    let own = files.iter().filter(|(path, _)| !path.contains('/'));
    own.map(|(_, file)| file)
}

impl Entry {
    fn parse(line: &str) -> Option<(u32, Entry)> {
        let (number, rest) = line.split_once('=')?;
        let number = number.trim().parse().ok()?;
        let text = rest.trim().strip_prefix('"')?.strip_suffix('"')?;
        let live = text.strip_prefix(REMOVED);
        let (field_type, name) = live.unwrap_or(text).rsplit_once(' ')?;
        let entry = Entry {
            is_removed: live.is_some(),
            field_type: field_type.to_owned(),
            name: name.to_owned(),
        };
        Some((number, entry))
    }

    /// Why a field cannot have this number.
    fn problem(&self, number: u32, earlier: &BTreeMap<u32, Entry>) -> Option<String> {
        let name = &self.name;
        let free = earlier.keys().max().map_or(1, |last| last + 1).max(number);
        if let Some((had, _)) = earlier.iter().find(|(_, entry)| entry.name == *name)
            && *had != number
        {
            return Some(format!(
                "the field `{name}` had the number {had}, and has {number} now: write `proto = {had}`"
            ));
        }
        let same = earlier.get(&number)?;
        if same.name != *name {
            let was = if same.is_removed { "was" } else { "is" };
            return Some(format!(
                "the number {number} of the field `{name}` {was} that of `{}`: write a number that no field had, such as {free}",
                same.name
            ));
        }
        (same.field_type != self.field_type).then(|| {
            format!(
                "the field `{name}` = {number} was `{}`, and is `{}` now: give the new one another name and number, such as {free}",
                same.field_type, self.field_type
            )
        })
    }
}

#[cfg(test)]
mod tests;
