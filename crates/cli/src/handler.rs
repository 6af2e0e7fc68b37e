//! The built-in handlers of `overdue consume`.

pub(crate) mod exec;
pub(crate) mod print;
