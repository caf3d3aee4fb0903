//! Renders templates: the only module that uses tera. Rust is parsed and printed by prettyplease, so a template's line
//! breaks do not matter and invalid Rust is never written.

use serde::Serialize;
use tera::{Context, Tera};

/// A template that does not fit its view, or does not produce valid Rust: a bug of the generator.
#[derive(Debug)]
pub struct RenderError {
    template: String,
    reason: String,
}

impl std::fmt::Display for RenderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "template {} failed (a bug in apiloom): {}",
            self.template, self.reason
        )
    }
}

impl std::error::Error for RenderError {}

/// All templates, and the first line of generated files.
pub(crate) struct Renderer {
    tera: Tera,
    header: String,
}

impl Renderer {
    pub(crate) fn new(header: String) -> Result<Renderer, RenderError> {
        let mut tera = Tera::new();
        tera.autoescape_on(Vec::<&str>::new());
        let fail = |reason: tera::Error| RenderError {
            template: "table".to_owned(),
            reason: reason.to_string(),
        };
        tera.add_raw_templates(apiloom_templates::TEMPLATES.iter().copied())
            .map_err(fail)?;
        Ok(Renderer { tera, header })
    }

    /// Renders a formatted Rust file.
    pub(crate) fn rust<View: Serialize>(
        &self,
        template: &str,
        view: &View,
    ) -> Result<Vec<u8>, RenderError> {
        let text = self.text(template, view)?;
        let file = syn::parse_file(&text).map_err(|error| RenderError {
            template: template.to_owned(),
            reason: format!("{error} at line {} of\n{text}", error.span().start().line),
        })?;
        Ok(format!("// {}\n{}", self.header, prettyplease::unparse(&file)).into_bytes())
    }

    /// Renders a Rust file in the template's own lines, which it has inside a macro call.
    pub(crate) fn rust_as_written<View: Serialize>(
        &self,
        template: &str,
        view: &View,
    ) -> Result<Vec<u8>, RenderError> {
        let text = self.text(template, view)?;
        syn::parse_file(&text).map_err(|error| RenderError {
            template: template.to_owned(),
            reason: format!("{error} at line {} of\n{text}", error.span().start().line),
        })?;
        Ok(format!("// {}\n{}\n", self.header, text.trim()).into_bytes())
    }

    /// Renders a YAML file.
    pub(crate) fn yaml<View: Serialize>(
        &self,
        template: &str,
        view: &View,
    ) -> Result<Vec<u8>, RenderError> {
        let text = self.text(template, view)?;
        Ok(format!("# {}\n{}\n", self.header, text.trim()).into_bytes())
    }

    /// Renders a file of Protobuf messages.
    pub(crate) fn proto<View: Serialize>(
        &self,
        template: &str,
        view: &View,
    ) -> Result<Vec<u8>, RenderError> {
        let text = self.text(template, view)?;
        Ok(format!("// {}\n{}\n", self.header, text.trim()).into_bytes())
    }

    /// Renders a file of Markdown.
    pub(crate) fn markdown<View: Serialize>(
        &self,
        template: &str,
        view: &View,
    ) -> Result<Vec<u8>, RenderError> {
        let text = self.text(template, view)?;
        Ok(format!("<!-- {} -->\n{}\n", self.header, text.trim()).into_bytes())
    }

    /// Renders a file that is the user's own: without a header.
    pub(crate) fn plain<View: Serialize>(
        &self,
        template: &str,
        view: &View,
    ) -> Result<String, RenderError> {
        Ok(format!("{}\n", self.text(template, view)?.trim()))
    }

    fn text<View: Serialize>(&self, template: &str, view: &View) -> Result<String, RenderError> {
        let fail = |reason: tera::Error| RenderError {
            template: template.to_owned(),
            reason: reason.to_string(),
        };
        let context = Context::from_serialize(view).map_err(fail)?;
        self.tera.render(template, &context).map_err(fail)
    }
}

#[cfg(test)]
mod tests;
