//! Choosing between operands.

use restride_tensor::{C32, C64};

pointwise! {
    WHERE(c, a, b) "`a` where `c` is not zero, else `b`" {
        int: if c != 0 { a } else { b }, real: if c != 0.0 { a } else { b }, complex: if c.re != 0.0 { a } else { b },
    }
    MASKED_FILL(a, c, b) "`b` where `c` is not zero, else `a`" {
        int: if c != 0 { b } else { a }, real: if c != 0.0 { b } else { a }, complex: if c.re != 0.0 { b } else { a },
    }
}
