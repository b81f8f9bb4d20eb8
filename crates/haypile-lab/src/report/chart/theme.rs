//! Colours of charts that follow the page.

use haypile_plot::drawing::marks::{COLOURS, OPTIMUM};
use haypile_plot::drawing::{Colour, GRID, INK, SOFT_INK, WHITE};

/// Returns an SVG drawing whose colours follow the page's style sheet: `--plot-ink`, `--plot-1` and
/// so on. Without a style sheet, colours stay as they are.
///
/// Drawings have colours as attributes, `fill="#RRGGBB"`, which may hold a variable as well.
pub(crate) fn themed(svg: &str) -> String {
    let mut names: Vec<(Colour, String)> = vec![
        (WHITE, "paper".to_owned()),
        (INK, "ink".to_owned()),
        (SOFT_INK, "soft-ink".to_owned()),
        (GRID, "grid".to_owned()),
        (OPTIMUM, "optimum".to_owned()),
    ];
    names.extend(COLOURS.into_iter().zip(1..).map(|(colour, n)| (colour, n.to_string())));
    let mut themed = svg.to_owned();
    for (colour, name) in names {
        let hex = colour.hex();
        for attribute in ["fill", "stroke"] {
            let variable = format!(" {attribute}=\"var(--plot-{name}, {hex})\"");
            themed = themed.replace(&format!(" {attribute}=\"{hex}\""), &variable);
        }
    }
    themed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_become_variables_and_text_stays() {
        let svg = "<rect fill=\"#FFFFFF\"/><path stroke=\"#0072B2\"/><text> fill=#FFFFFF</text>";
        assert_eq!(
            themed(svg),
            "<rect fill=\"var(--plot-paper, #FFFFFF)\"/>\
             <path stroke=\"var(--plot-1, #0072B2)\"/><text> fill=#FFFFFF</text>"
        );
    }
}
