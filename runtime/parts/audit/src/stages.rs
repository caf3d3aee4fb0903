//! Sets of stages.

use apiloom_server::server::auditor::AuditStage;

/// A set of the stages of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stages(u8);

impl Stages {
    /// All stages with their names, in their order.
    pub(super) const ALL: [(AuditStage, &'static str); 4] = [
        (AuditStage::RequestReceived, "RequestReceived"),
        (AuditStage::ResponseStarted, "ResponseStarted"),
        (AuditStage::ResponseComplete, "ResponseComplete"),
        (AuditStage::Panic, "Panic"),
    ];

    /// Those with these names.
    pub(super) fn named(names: &[String]) -> Self {
        let is_named = |name: &str| names.iter().any(|one| one == name);
        let named = Self::ALL.into_iter().filter(|(_, name)| is_named(name));
        Self(named.fold(0, |set, (stage, _)| set | bit(stage)))
    }

    /// Those of both.
    pub(super) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn has(self, stage: AuditStage) -> bool {
        self.0 & bit(stage) != 0
    }
}

/// The name of a stage in events.
pub(super) fn name(stage: AuditStage) -> &'static str {
    let found = Stages::ALL.iter().find(|(one, _)| *one == stage);
    found.map_or("", |(_, name)| name)
}

fn bit(stage: AuditStage) -> u8 {
    match stage {
        AuditStage::RequestReceived => 1,
        AuditStage::ResponseStarted => 2,
        AuditStage::ResponseComplete => 4,
        AuditStage::Panic => 8,
    }
}
