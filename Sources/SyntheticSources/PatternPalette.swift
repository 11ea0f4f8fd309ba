package import MediaCore

/// A colour in BT.601, limited range.
package struct YUVColour: Hashable, Sendable {
    /// Luma, 16 (black) to 235 (white).
    package let luma: UInt8
    /// Blue difference, 16 to 240, 128 neutral.
    package let chromaU: UInt8
    /// Red difference, 16 to 240, 128 neutral.
    package let chromaV: UInt8

    init(_ luma: UInt8, _ chromaU: UInt8, _ chromaV: UInt8) {
        self.luma = luma
        self.chromaU = chromaU
        self.chromaV = chromaV
    }
}

/// The colours of the test pattern, for code that checks whether they arrive.
package enum PatternPalette {
    /// The eight bars from left to right: white, yellow, cyan, green, magenta, red, blue, black.
    ///
    /// R, G and B are at 75 % of full swing (ITU-R BT.601-7, section 2.5), as in the bars of EBU and SMPTE.
    package static let bars = [
        YUVColour(180, 128, 128), YUVColour(162, 44, 142), YUVColour(131, 156, 44), YUVColour(112, 72, 58),
        YUVColour(84, 184, 198), YUVColour(65, 100, 212), YUVColour(35, 212, 114), YUVColour(16, 128, 128),
    ]

    /// The moving square: orange (R 255, G 128, B 0).
    static let square = YUVColour(146, 53, 193)
    static let white = YUVColour(235, 128, 128)
    static let black = YUVColour(16, 128, 128)
}

/// The positions of the test pattern's parts in a picture of a given size.
package struct PatternLayout: Hashable, Sendable {
    /// The rows of pixels with the colour bars.
    package let barRows: Range<Int>
    /// The rows of pixels with the scrolling gradient, below the bars.
    package let gradientRows: Range<Int>
    /// The size of the picture.
    package let dimensions: Dimensions

    /// The layout for pictures of `dimensions`.
    package init(dimensions: Dimensions) {
        self.dimensions = dimensions
        let band = BarcodeLayout(dimensions: dimensions)?.bandHeight ?? 0
        // The bounds are even, so that no byte of chroma belongs to two parts.
        let top = (band + 1) & ~1
        let bottom = max(top, (dimensions.height - band) & ~1)
        let middle = top + ((bottom - top) * 3 / 5) & ~1
        barRows = band == 0 ? 0..<middle : top..<middle
        gradientRows = middle..<(band == 0 ? dimensions.height : bottom)
    }

    /// The columns of bar `index`, 0 to 7 from the left; all bounds except the last bar's end are even.
    package func barColumns(_ index: Int) -> Range<Int> {
        let edge = { (index: Int) in index == 8 ? dimensions.width : (dimensions.width * index / 8) & ~1 }
        return edge(index)..<edge(index + 1)
    }
}
