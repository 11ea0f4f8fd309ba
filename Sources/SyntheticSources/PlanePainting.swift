/// A rectangle of a plane, in bytes and rows.
struct PlaneArea {
    var columns: Range<Int>
    var rows: Range<Int>

    /// The same area in a chroma plane, where each byte stands for two by two pixels.
    var chroma: PlaneArea {
        PlaneArea(
            columns: columns.lowerBound / 2..<(columns.upperBound + 1) / 2,
            rows: rows.lowerBound / 2..<(rows.upperBound + 1) / 2
        )
    }
}

extension MutableSpan where Element == UInt8 {
    /// Sets the bytes at `range`, which must lie inside the span.
    mutating func fill(_ range: Range<Int>, with value: UInt8) {
        precondition(range.lowerBound >= 0 && range.upperBound <= count, "\(range) in \(count) bytes")
        unsafe withUnsafeMutableBufferPointer { bytes in
            guard let base = bytes.baseAddress else { return }
            unsafe (base + range.lowerBound).update(repeating: value, count: range.count)
        }
    }

    /// Sets the bytes of a rectangle whose rows lie `stride` bytes apart.
    mutating func fill(_ area: PlaneArea, stride: Int, with value: UInt8) {
        for row in area.rows {
            fill(row * stride + area.columns.lowerBound..<row * stride + area.columns.upperBound, with: value)
        }
    }

    /// Copies the bytes of `source` at `range` to `offset`; both ranges must lie inside their spans.
    mutating func copy(_ source: Span<UInt8>, _ range: Range<Int>, to offset: Int) {
        precondition(range.lowerBound >= 0 && range.upperBound <= source.count, "\(range) in \(source.count) bytes")
        precondition(offset >= 0 && offset + range.count <= count, "\(range.count) bytes at \(offset) in \(count)")
        unsafe withUnsafeMutableBufferPointer { bytes in
            unsafe source.withUnsafeBufferPointer { source in
                guard let base = bytes.baseAddress, let start = source.baseAddress else { return }
                unsafe (base + offset).update(from: start + range.lowerBound, count: range.count)
            }
        }
    }

    /// Copies `count` bytes of the row that starts at byte `first` over each of `rows`, which lie `stride` bytes apart.
    mutating func repeatRow(at first: Int, count rowBytes: Int, over rows: Range<Int>, stride: Int) {
        guard let last = rows.last else { return }
        precondition(first >= 0 && first + rowBytes <= count && rows.lowerBound >= 0, "a row at \(first) of \(count)")
        precondition(last * stride + rowBytes <= count && rowBytes <= stride, "rows \(rows) in \(count) bytes")
        unsafe withUnsafeMutableBufferPointer { bytes in
            guard let base = bytes.baseAddress else { return }
            for row in rows where row * stride != first {
                unsafe (base + row * stride).update(from: base + first, count: rowBytes)
            }
        }
    }
}
