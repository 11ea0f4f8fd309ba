package import MediaCore

/// A machine-readable mark in the luma of a test picture, with the frame's number and capture time.
///
/// It has 96 bits, most significant first: the number (32), the capture time in microseconds modulo 2⁴⁸ (48), and a
/// CRC-16 of both (polynomial 0x1021, initially 0xFFFF). Unused cells of the grid alternate white and black. White is
/// luma 235, black 16, and chroma is neutral. The mark is drawn at the top and at the bottom edge, which reveals a
/// picture whose parts come from different frames. It is not drawn if `BarcodeLayout` finds no room.
package struct Barcode: Hashable, Sendable {
    /// The number of the captured frame in its source, modulo 2³².
    package var number: UInt32
    /// When the frame was captured, in whole microseconds; modulo 2⁴⁸ µs (8.9 years).
    package var timestamp: MonotonicInstant

    /// The number of bits of one copy.
    package static let bitCount = 96

    private static let timeMask: UInt64 = 1 << 48 - 1
    /// Luma halfway between black and white.
    private static let threshold = 126
    /// The least distance from `threshold` at which a cell's mean counts.
    ///
    /// Coding at low rates moves a cell by some ten steps. With the 16 samples of a small cell, noise of full range
    /// comes this far in few cells of a hundred, so that a hundred such cells never look like a barcode.
    private static let margin = 32
    private static let white: UInt8 = 235
    private static let black: UInt8 = 16

    /// Creates the mark of frame `number`, captured at `timestamp`.
    package init(number: UInt32, timestamp: MonotonicInstant) {
        self.number = number
        let microseconds = UInt64(bitPattern: timestamp.microseconds) & Self.timeMask
        self.timestamp = MonotonicInstant(microseconds: Int64(microseconds))
    }

    private var microseconds: UInt64 { UInt64(timestamp.microseconds) & Self.timeMask }

    /// Whether the picture was captured after that of `other`; the times wrap around.
    package func isLater(than other: Barcode) -> Bool {
        let difference = (microseconds &- other.microseconds) & Self.timeMask
        return difference > 0 && difference <= Self.timeMask / 2
    }

    /// The CRC of the 80 bits `number`, `microseconds`.
    private var checksum: UInt16 {
        var remainder: UInt16 = 0xFFFF
        for position in 0..<80 {
            let bit = position < 32 ? UInt64(number) >> (31 - position) : microseconds >> (79 - position)
            let isCarried = remainder >> 15 != UInt16(bit & 1)
            remainder = remainder << 1 ^ (isCarried ? 0x1021 : 0)
        }
        return remainder
    }

    /// The 96 bits: the first 32, then the other 64, most significant first.
    private var bits: (UInt32, UInt64) { (number, microseconds << 16 | UInt64(checksum)) }

    /// Reads a barcode from 96 bits; `nil` if the checksum is wrong.
    private init?(bits: (UInt32, UInt64)) {
        self.init(number: bits.0, timestamp: MonotonicInstant(microseconds: Int64(bits.1 >> 16)))
        guard checksum == UInt16(truncatingIfNeeded: bits.1) else { return nil }
    }
}

extension Barcode {
    /// Draws both copies into `buffer`, which only the caller may hold.
    ///
    /// - Returns: `false`, with nothing drawn, if the picture is too small.
    @discardableResult
    package func paint(into buffer: VideoBuffer) -> Bool {
        guard let layout = BarcodeLayout(dimensions: buffer.dimensions) else { return false }
        let lumaStride = buffer.lumaStride
        let chromaStride = buffer.chromaStride
        buffer.withMutablePlanes { luma, chromaU, chromaV in
            for isTop in [true, false] {
                let start = layout.bandStart(isTop: isTop)
                paint(layout, from: start, into: &luma, stride: lumaStride)
                let band = PlaneArea(columns: 0..<layout.dimensions.width, rows: start..<start + layout.bandHeight)
                chromaU.fill(band.chroma, stride: chromaStride, with: 128)
                chromaV.fill(band.chroma, stride: chromaStride, with: 128)
            }
        }
        return true
    }

    private func paint(_ layout: BarcodeLayout, from start: Int, into luma: inout MutableSpan<UInt8>, stride: Int) {
        let bits = bits
        for row in 0..<layout.grid.rows {
            let first = (start + layout.edge(row)) * stride
            for column in 0..<layout.grid.columns {
                let isWhite = Self.isWhite(cell: row * layout.grid.columns + column, of: bits)
                let cell = first + layout.edge(column)..<first + layout.edge(column + 1)
                luma.fill(cell, with: isWhite ? Self.white : Self.black)
            }
            luma.repeatRow(
                at: first,
                count: layout.dimensions.width,
                over: start + layout.edge(row)..<start + layout.edge(row + 1),
                stride: stride
            )
        }
    }

    private static func isWhite(cell: Int, of bits: (UInt32, UInt64)) -> Bool {
        switch cell {
        case ..<32: bits.0 >> (31 - cell) & 1 == 1
        case ..<bitCount: bits.1 >> (bitCount - 1 - cell) & 1 == 1
        default: (cell - bitCount).isMultiple(of: 2)
        }
    }
}

/// The result of looking for a `Barcode` in a picture.
package enum BarcodeReading: Hashable, Sendable {
    /// Both copies have this value, or one has it and the other cannot be read.
    case value(Barcode)
    /// The copies differ: the parts of the picture come from different frames.
    case torn(top: Barcode, bottom: Barcode)
    /// No copy can be read.
    case none
}

extension Barcode {
    /// Looks for a barcode in a picture, which may have been scaled as a whole since it was painted.
    ///
    /// If one copy cannot be read, the other counts.
    package static func read(from buffer: VideoBuffer) -> BarcodeReading {
        let painted = BarcodeLayout(dimensions: buffer.dimensions)
        return buffer.withPlanes { luma, _, _ in
            if let painted {
                let reading = read(painted, from: luma, stride: buffer.lumaStride)
                if reading != .none { return reading }
            }
            for grid in BarcodeLayout.grids where grid != painted?.grid {
                guard let layout = BarcodeLayout(dimensions: buffer.dimensions, grid: grid) else { continue }
                let reading = read(layout, from: luma, stride: buffer.lumaStride)
                if reading != .none { return reading }
            }
            return .none
        }
    }

    private static func read(_ layout: BarcodeLayout, from luma: Span<UInt8>, stride: Int) -> BarcodeReading {
        let top = readCopy(layout, isTop: true, from: luma, stride: stride)
        let bottom = readCopy(layout, isTop: false, from: luma, stride: stride)
        return switch (top, bottom) {
        case (let top?, let bottom?): top == bottom ? .value(top) : .torn(top: top, bottom: bottom)
        case (let one?, nil), (nil, let one?): .value(one)
        case (nil, nil): .none
        }
    }

    private static func readCopy(
        _ layout: BarcodeLayout,
        isTop: Bool,
        from luma: Span<UInt8>,
        stride: Int
    ) -> Barcode? {
        let start = layout.bandStart(isTop: isTop)
        var bits: (UInt32, UInt64) = (0, 0)
        for row in 0..<layout.grid.rows {
            let rows = middle(of: start + layout.edge(row)..<start + layout.edge(row + 1))
            for column in 0..<layout.grid.columns {
                let columns = middle(of: layout.edge(column)..<layout.edge(column + 1))
                let difference = mean(of: luma, PlaneArea(columns: columns, rows: rows), stride: stride) - threshold
                guard abs(difference) > margin else { return nil }
                let isWhite = difference > 0
                switch row * layout.grid.columns + column {
                case ..<32: bits.0 = bits.0 << 1 | (isWhite ? 1 : 0)
                case ..<bitCount: bits.1 = bits.1 << 1 | (isWhite ? 1 : 0)
                case let cell: guard isWhite == Self.isWhite(cell: cell, of: bits) else { return nil }
                }
            }
        }
        return Barcode(bits: bits)
    }

    /// A cell without its outer quarters, which coding and scaling mix with its neighbours.
    private static func middle(of cell: Range<Int>) -> Range<Int> {
        cell.lowerBound + cell.count / 4..<cell.upperBound - cell.count / 4
    }

    /// The mean of at most 8 × 8 samples, evenly spread.
    private static func mean(of luma: Span<UInt8>, _ area: PlaneArea, stride: Int) -> Int {
        var sum = 0
        var count = 0
        for row in Swift.stride(from: area.rows.lowerBound, to: area.rows.upperBound, by: (area.rows.count + 7) / 8) {
            let step = (area.columns.count + 7) / 8
            for column in Swift.stride(from: area.columns.lowerBound, to: area.columns.upperBound, by: step) {
                sum += Int(luma[row * stride + column])
                count += 1
            }
        }
        return sum / count
    }
}
