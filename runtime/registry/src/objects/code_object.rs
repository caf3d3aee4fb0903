//! Objects that code answers: their type, and whether they are what was asked for.

use apiloom_meta::codec::Encoder;
use apiloom_meta::kind::Scope;
use apiloom_meta::{ApiError, Object};

use super::code::Read;
use super::versioned_resource::VersionedResource;
use crate::options::RequestContext;

impl VersionedResource {
    /// Reads an object by code, which must be the one that was asked for: who may read it was decided by its name.
    ///
    /// # Errors
    /// Those of the code; BadRequest for a name that no object has; InternalError for another object.
    pub(crate) async fn read_by_code(
        &self,
        code: &dyn Read,
        ctx: &RequestContext,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Object, ApiError> {
        self.kind.keys.key(namespace, name)?;
        let mut object = code.get(ctx, namespace, name).await?;
        self.identify(&mut object)?;
        self.check_place(&object, namespace, name)?;
        // As every decoded object has them: a write that changes nothing is known by that.
        Encoder::of(self.schema()).pack_managed_fields(&mut object);
        Ok(object)
    }

    /// Sets the type of an object of the code, and returns the key that it would have in a store.
    ///
    /// # Errors
    /// InternalError if it has no name, or has no namespace although its kind is namespaced, or the reverse.
    pub(crate) fn identify(&self, object: &mut Object) -> Result<String, ApiError> {
        self.set_type(object);
        let namespace = Some(object.namespace()).filter(|namespace| !namespace.is_empty());
        if namespace.is_some() != (self.kind.scope == Scope::Namespaced) {
            return Err(self.wrong_object(object));
        }
        let key = self.kind.keys.key(namespace, object.name());
        key.map_err(|_| self.wrong_object(object))
    }

    /// InternalError if an object of the code has another name or namespace than the request.
    pub(crate) fn check_place(
        &self,
        object: &Object,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<(), ApiError> {
        let is_there = namespace.is_none_or(|namespace| namespace == object.namespace());
        if is_there && object.name() == name {
            return Ok(());
        }
        Err(self.wrong_object(object))
    }

    fn wrong_object(&self, object: &Object) -> ApiError {
        ApiError::internal(format!(
            "the code of {} answered with the wrong object: namespace {:?}, name {:?}",
            self.group_resource(),
            object.namespace(),
            object.name()
        ))
    }
}
