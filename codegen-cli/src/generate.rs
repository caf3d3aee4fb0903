//! The pure core: from a model to files. It does no I/O.

use std::collections::BTreeMap;

use crate::client_crate::ClientFeatures;
use crate::model::Model;
use crate::reference::ReferenceView;
use crate::render::{RenderError, Renderer};
pub use crate::settings::{CONTRACT, Settings};
use crate::view::{
    ApiServiceView, ApplyView, ClientModView, ClientsetView, FakeView, IndexesView, InstallView,
    KubeView, ListView, MainView, MethodsView, ModView, ProtoView, RbacView, RegistryView,
};
use apiloom_meta::kind::ProtoFile;

/// A file's path relative to the package, with `/` on every platform.
pub type RelPath = String;

/// The files of one phase.
pub type Files = BTreeMap<RelPath, Vec<u8>>;

/// A `.proto` file of the second phase; the header is its first line.
pub fn proto_file(file: &ProtoFile, header: &str) -> Result<Vec<u8>, RenderError> {
    Renderer::new(header.to_owned())?.proto("messages.proto.tera", &ProtoView::new(file))
}

/// The API reference of the second phase.
pub(crate) fn reference(view: &ReferenceView, header: &str) -> Result<Vec<u8>, RenderError> {
    Renderer::new(header.to_owned())?.markdown("reference.md.tera", view)
}

/// Phase 1: generates everything that needs only the source.
pub fn generate(model: &Model, settings: &Settings) -> Result<Files, RenderError> {
    let renderer = Renderer::new(settings.header(&model.package))?;
    if let Some(path) = &settings.list_from {
        let list = renderer.rust("list.rs.tera", &ListView::new(model, path))?;
        return Ok(BTreeMap::from([("src/generated/mod.rs".to_owned(), list)]));
    }
    let mut files = BTreeMap::from([
        (
            "src/generated/registry.rs".to_owned(),
            renderer.rust("registry.rs.tera", &RegistryView::new(model))?,
        ),
        (
            "src/generated/install.rs".to_owned(),
            renderer.rust("install.rs.tera", &InstallView::new(model))?,
        ),
        (
            settings.main(),
            renderer.rust("main.rs.tera", &MainView::new(model, settings))?,
        ),
        (
            "generated/manifests/rbac.yaml".to_owned(),
            renderer.yaml("rbac.yaml.tera", &RbacView::new(model))?,
        ),
    ]);
    if settings.clients {
        files.extend(clients(model, &renderer)?);
    }
    if settings.kube {
        files.insert(
            "src/generated/kube.rs".to_owned(),
            renderer.rust("kube.rs.tera", &KubeView::new(model))?,
        );
    }
    if settings.has_fake() {
        files.insert(
            "src/generated/fake.rs".to_owned(),
            renderer.rust("fake.rs.tera", &FakeView::new(model))?,
        );
    }
    let modules = renderer.rust("mod.rs.tera", &ModView::new(model, &files))?;
    files.insert("src/generated/mod.rs".to_owned(), modules);
    let services = ApiServiceView::new(model, settings);
    // kubectl refuses to apply a file without an object, and a package with only the core group has none.
    if !services.services.is_empty() {
        files.insert(
            "generated/manifests/apiservice.yaml".to_owned(),
            renderer.yaml("apiservice.yaml.tera", &services)?,
        );
    }
    Ok(files)
}

/// The files of clients, in `src/generated`.
fn clients(model: &Model, renderer: &Renderer) -> Result<Files, RenderError> {
    let path = |name: &str| format!("src/generated/{name}.rs");
    let clientset = renderer.rust_as_written("clientset.rs.tera", &ClientsetView::new(model))?;
    let apply = renderer.rust_as_written("apply.rs.tera", &ApplyView::new(model))?;
    let mut files = Files::from([(path("clientset"), clientset), (path("apply"), apply)]);
    if let Some(view) = MethodsView::new(model) {
        let methods = renderer.rust_as_written("methods.rs.tera", &view)?;
        files.insert(path("methods"), methods);
    }
    if let Some(view) = IndexesView::new(model) {
        let indexes = renderer.rust_as_written("index.rs.tera", &view)?;
        files.insert(path("index"), indexes);
    }
    Ok(files)
}

/// The files of a package with the clients of another one, which has these features.
pub(crate) fn client_crate(model: &Model, features: ClientFeatures) -> Result<Files, RenderError> {
    let settings = Settings::new("", "");
    let header = format!("{} --client-crate", settings.header(&model.package));
    let renderer = Renderer::new(header)?;
    let model = &model.named_by_another_crate();
    let mut files = clients(model, &renderer)?;
    let path = |name: &str| format!("src/generated/{name}.rs");
    if features.fake {
        let view = FakeView::of_another_crate(model);
        files.insert(path("fake"), renderer.rust("fake.rs.tera", &view)?);
    }
    if features.kube {
        let view = KubeView::new(model);
        files.insert(path("kube"), renderer.rust("kube.rs.tera", &view)?);
    }
    let modules = renderer.rust("client.rs.tera", &ClientModView::new(model, &files))?;
    files.insert("src/generated/mod.rs".to_owned(), modules);
    Ok(files)
}
