import MediaCore

/// The parts of a picture that have to be fetched again.
///
/// A pure value. Each part has even sides, column and row, so that it has whole bytes of chroma. Parts may overlap.
struct DirtyArea: Equatable {
    /// From this number on, one part that covers all of them is cheaper than a request for each.
    private static let mostParts = 12

    /// The picture's size; both sides are even.
    let dimensions: Dimensions
    /// The parts.
    private(set) var parts: [PixelArea] = []

    /// A picture of which everything is dirty.
    init(whole dimensions: Dimensions) {
        self.dimensions = dimensions
        parts.reserveCapacity(Self.mostParts)
        parts.append(PixelArea(whole: dimensions))
    }

    /// Whether nothing is dirty.
    var isEmpty: Bool { parts.isEmpty }

    /// Whether everything is dirty.
    var isWhole: Bool { parts == [PixelArea(whole: dimensions)] }

    /// Adds `area`, of which only the part inside the picture counts.
    mutating func add(_ area: PixelArea) {
        guard !isWhole, let inside = area.intersection(PixelArea(whole: dimensions)) else { return }
        let even = inside.evenlyExpanded
        guard !parts.contains(where: { $0.intersection(even) == even }) else { return }
        parts.removeAll { even.intersection($0) == $0 }
        parts.append(even)
        let pixels = parts.reduce(0) { $0 + $1.dimensions.area }
        if parts.count > Self.mostParts || pixels > dimensions.area { mergeAll() }
    }

    /// Marks everything as dirty.
    mutating func addAll() {
        parts.removeAll(keepingCapacity: true)
        parts.append(PixelArea(whole: dimensions))
    }

    /// Marks everything as clean.
    mutating func removeAll() { parts.removeAll(keepingCapacity: true) }

    private mutating func mergeAll() {
        let merged = parts.dropFirst().reduce(parts[0]) { $0.union($1) }
        parts.removeAll(keepingCapacity: true)
        parts.append(merged)
    }
}

extension PixelArea {
    /// The smallest area with even sides, column and row that covers this one.
    fileprivate var evenlyExpanded: PixelArea {
        let (left, top) = (column & ~1, row & ~1)
        let (right, bottom) = ((endColumn + 1) & ~1, (endRow + 1) & ~1)
        return PixelArea(column: left, row: top, dimensions: Dimensions(width: right - left, height: bottom - top))
    }
}
