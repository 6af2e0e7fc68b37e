//! The built-in handlers of `overdue consume`.

pub(crate) mod print;
