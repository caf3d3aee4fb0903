//! The registration of reviews. They are served where a part answers them, which also checks them: kube-apiserver's errors about them name
//! no kind.

use super::v1::{
    LocalSubjectAccessReview, SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectAccessReview,
};
use crate::review::reviews;

reviews! { LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview }
