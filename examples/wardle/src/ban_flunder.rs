//! Refuses Flunders whose name a Fischer disallows.

use apiloom::prelude::*;

use crate::v1alpha1::{Fischer, Flunder};

const REFUSAL: &str = "this name may not be used, please change the resource name";

/// The admission plugin BanFlunder; it reads Fischers from memory.
pub struct BanFlunder(pub Lister<Fischer>);

#[async_trait]
impl Admission for BanFlunder {
    fn name(&self) -> &'static str {
        "BanFlunder"
    }
    async fn mutate(&self, request: &mut AdmissionRequest<'_>) -> Result<(), ApiError> {
        if request.operation != Operation::Create || !request.is::<Flunder>() {
            return Ok(());
        }
        let fischers = self.0.list()?;
        let mut banned = fischers.iter().flat_map(|f| &f.disallowed_flunders);
        if banned.any(|name| name == request.name) {
            return Err(request.forbidden(REFUSAL));
        }
        Ok(())
    }
}
