//! The conditions of kinds that have a type of their own for them, as Kubernetes declared it before there was a common one.

/// Makes a type of conditions one that `Conditions` keeps. The fields that are named stay as they are unless they are set.
macro_rules! status_condition {
    ($type:ident $(, $kept:ident)*) => {
        impl From<apiloom_meta::Condition> for $type {
            fn from(condition: apiloom_meta::Condition) -> Self {
                Self {
                    condition_type: condition.condition_type,
                    status: condition.status.as_str().to_owned(),
                    last_transition_time: Some(condition.last_transition_time),
                    reason: Some(condition.reason),
                    message: Some(condition.message),
                    $($kept: condition.$kept,)*
                }
            }
        }

        impl apiloom_meta::StatusCondition for $type {
            fn condition_type(&self) -> &str {
                &self.condition_type
            }

            fn is_true(&self) -> bool {
                self.status == apiloom_meta::ConditionStatus::True.as_str()
            }

            fn keep(&mut self, present: &Self) {
                if present.status == self.status {
                    self.last_transition_time = present.last_transition_time;
                }
                $(self.$kept = self.$kept.or(present.$kept);)*
            }
        }
    };
}
pub(crate) use status_condition;
