//! Where a walk stands: a chain of borrowed steps on the stack, turned into text only when there is an error.

use std::fmt::Write;

use crate::field::FieldPath;

/// One step of the chain, from the value back to the root.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    /// The step to a child: of a map its key, else its field.
    pub(crate) fn step(&'a self, is_map: bool, name: &'a str) -> Path<'a> {
        if is_map {
            Path::Key(self, name)
        } else {
            Path::Field(self, name)
        }
    }

    /// As field errors print it: `spec.ports[0].name`, `data[key]`.
    pub(crate) fn field(&self) -> FieldPath {
        let mut text = String::new();
        self.write(&mut text, &|out, key| write!(out, "[{key}]").is_ok());
        if text.is_empty() {
            FieldPath::root()
        } else {
            FieldPath::new(text)
        }
    }

    /// As strict decoding errors print it: map keys are steps like fields, `data.key`.
    pub(crate) fn strict(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, &|out, key| {
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(key);
            true
        });
        text
    }

    /// As Go's type errors print it: the fields alone.
    pub(crate) fn fields_only(&self) -> String {
        match self {
            Path::Root => String::new(),
            Path::Key(parent, _) | Path::Index(parent, _) => parent.fields_only(),
            Path::Field(parent, name) => match parent.fields_only() {
                above if above.is_empty() => (*name).to_owned(),
                above => format!("{above}.{name}"),
            },
        }
    }

    fn write(&self, out: &mut String, key: &dyn Fn(&mut String, &str) -> bool) {
        match self {
            Path::Root => {}
            Path::Field(parent, name) => {
                parent.write(out, key);
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
            Path::Key(parent, name) => {
                parent.write(out, key);
                key(out, name);
            }
            Path::Index(parent, index) => {
                parent.write(out, key);
                out.push_str(&format!("[{index}]"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reader_gets_its_own_spelling() {
        let spec = Path::Field(&Path::Root, "spec");
        let data = Path::Field(&spec, "data");
        let key = Path::Key(&data, "a.b");
        let index = Path::Index(&key, 2);
        let name = Path::Field(&index, "name");
        assert_eq!(name.field().as_str(), "spec.data[a.b][2].name");
        assert_eq!(name.strict(), "spec.data.a.b[2].name");
        assert_eq!(name.fields_only(), "spec.data.name");
        assert_eq!(Path::Root.field(), FieldPath::root());
    }
}
