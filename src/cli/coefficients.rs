//! The coefficients of a stencil, as they are given on the command line.

use std::str::FromStr;

use pdawl::codelet::stencil::Dimensions;

/// The factors of a point and its neighbours, 5 in 2-D or 7 in 3-D.
#[derive(Clone, Debug, PartialEq)]
pub struct Coefficients(pub Vec<f64>);

impl FromStr for Coefficients {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Vec<&str> = text.split(',').map(str::trim).collect();
        let [flat, solid] = [Dimensions::Two, Dimensions::Three].map(Dimensions::neighbourhood);
        if ![flat.len(), solid.len()].contains(&numbers.len()) {
            return Err(format!(
                "{} numbers; write {} in 2-D ({}) or {} in 3-D (those, {})",
                numbers.len(),
                flat.len(),
                flat.join(", "),
                solid.len(),
                solid[flat.len()..].join(", ")
            ));
        }
        let parsed = numbers.iter().zip(solid).map(|(number, point)| {
            let wrong = |why: &str| format!("the coefficient of {point}, '{number}', {why}");
            let parsed: f64 = (number.parse()).map_err(|_| wrong("is not a number"))?;
            match parsed.is_finite() {
                true => Ok(parsed),
                false => Err(wrong("is not finite")),
            }
        });
        Ok(Self(parsed.collect::<Result<_, String>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_or_seven_finite_numbers() {
        let of = |text: &str| text.parse::<Coefficients>();
        assert_eq!(
            of("-1, .5,2e-3,0,1"),
            Ok(Coefficients(vec![-1.0, 0.5, 0.002, 0.0, 1.0]))
        );
        assert_eq!(of("1,2,3,4,5,6,7").unwrap().0.len(), 7);
        for (text, part) in [
            (
                "1,2,3",
                "3 numbers; write 5 in 2-D (centre, north, south, west, east) or 7",
            ),
            ("1,2,3,4,5,6", "6 numbers"),
            ("", "1 numbers"),
            ("1,2,x,4,5", "of south, 'x', is not a number"),
            ("1,2,3,4,5,6,nan", "of above, 'nan', is not finite"),
            ("inf,2,3,4,5", "of centre, 'inf', is not finite"),
            ("1,2,3,4,", "of east, '', is not a number"),
        ] {
            let error = of(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
