//! Refuses Flunders whose name a Fischer disallows.

use apiloom::prelude::*;

use crate::v1alpha1::{Fischer, Flunder};

/// The admission plugin BanFlunder; it reads Fischers from memory.
pub struct BanFlunder(pub Lister<Fischer>);

#[async_trait]
impl Admission for BanFlunder {
    fn name(&self) -> &'static str {
        "BanFlunder"
    }
    async fn mutate(&self, request: &mut AdmissionRequest<'_>) -> Result<(), ApiError> {
        let judged = request.operation == Operation::Create && request.is::<Flunder>();
        let bans = |fischer: &Fischer| {
            fischer
                .disallowed_flunders
                .iter()
                .any(|name| name == request.name)
        };
        if judged && self.0.list().await?.iter().any(|fischer| bans(fischer)) {
            return Err(
                request.forbidden("this name may not be used, please change the resource name")
            );
        }
        Ok(())
    }
}
