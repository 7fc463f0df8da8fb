//! The forms of a field: a size is a number or an expression, a list is a list or a
//! text with brackets, a flag is 0, 1, `true` or `"1"`.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};

use crate::expression::{self, Expression};

/// The mark of a value that the user must fill in.
pub const TO_FILL: &str = "?";

/// A field that is a number or an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Amount(pub Expression);

/// A field that is one or several of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Amounts(pub Vec<Expression>);

/// A field that is a number from 0 on: a position, an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(pub u64);

/// A field that is true or false.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flag(pub bool);

fn amount<E: de::Error>(text: &str) -> Result<Expression, E> {
    match text.trim() == TO_FILL {
        true => Err(E::custom("`?` marks a value that is to be filled in")),
        false => text.parse().map_err(E::custom),
    }
}

struct AmountVisitor;

impl Visitor<'_> for AmountVisitor {
    type Value = Expression;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a number, or a text with an expression such as \"dataset*2\"")
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Expression, E> {
        Ok(number.into())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Expression, E> {
        let number = i64::try_from(number);
        number
            .map(Expression::from)
            .map_err(|_| E::custom("the number does not fit in 64 bits"))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Expression, E> {
        Ok(number.into())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Expression, E> {
        amount(text)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AmountVisitor).map(Self)
    }
}

impl<'de> Deserialize<'de> for Amounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;

        impl<'de> Visitor<'de> for List {
            type Value = Amounts;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a list such as [256, \"dataset/4\"], a number, or \"[a, b]\"")
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Amounts, E> {
                AmountVisitor
                    .visit_u64(number)
                    .map(|one| Amounts(vec![one]))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Amounts, E> {
                Ok(Amounts(vec![number.into()]))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Amounts, E> {
                if text.contains(TO_FILL) {
                    return amount(TO_FILL).map(|one| Amounts(vec![one]));
                }
                expression::list(text).map(Amounts).map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Amounts, A::Error> {
                let mut all = Vec::new();
                while let Some(Amount(one)) = seq.next_element()? {
                    all.push(one);
                }
                Ok(Amounts(all))
            }
        }

        deserializer.deserialize_any(List)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;

        impl Visitor<'_> for Number {
            type Value = Count;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a whole number from 0 on")
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Count, E> {
                Ok(Count(number))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Count, E> {
                let number = u64::try_from(number);
                number
                    .map(Count)
                    .map_err(|_| E::invalid_type(de::Unexpected::Other("a negative number"), &self))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Count, E> {
                let number = text.trim().parse();
                number
                    .map(Count)
                    .map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_any(Number)
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Word;

        impl Visitor<'_> for Word {
            type Value = Flag;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("0 or 1")
            }

            fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Flag, E> {
                Ok(Flag(flag))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Flag, E> {
                match number {
                    0 => Ok(Flag(false)),
                    1 => Ok(Flag(true)),
                    _ => Err(E::invalid_value(de::Unexpected::Unsigned(number), &self)),
                }
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Flag, E> {
                match text.trim() {
                    "0" | "false" => Ok(Flag(false)),
                    "1" | "true" => Ok(Flag(true)),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
        }

        deserializer.deserialize_any(Word)
    }
}
