package import MediaCore

/// The bitrates that suit VP8 pictures of a size, at 30 frames a second.
///
/// The table is libwebrtc's for a single encoding (`video/config/encoder_info_settings.cc`); sizes between its rows are
/// interpolated by their number of pixels.
package struct SizeBitrates: Hashable, Sendable {
    /// The bitrate from which this size is better than a smaller one.
    package var lowestToStart: Bitrate
    /// The bitrate below which even a still picture of this size is of no use.
    package var lowest: Bitrate
    /// The bitrate above which the pictures hardly become better.
    package var highest: Bitrate

    private struct Row {
        var area: Int
        /// Kilobits per second.
        var lowestToStart: Int
        var highest: Int
    }

    private static let table = [
        Row(area: 320 * 180, lowestToStart: 0, highest: 300),
        Row(area: 480 * 270, lowestToStart: 200, highest: 500),
        Row(area: 640 * 360, lowestToStart: 300, highest: 800),
        Row(area: 960 * 540, lowestToStart: 500, highest: 1500),
        Row(area: 1280 * 720, lowestToStart: 900, highest: 2500),
        Row(area: 1920 * 1080, lowestToStart: 2000, highest: 5000),
    ]

    /// The bitrates for `dimensions`.
    package init(for dimensions: Dimensions) {
        // No picture that can be coded is larger; a larger one would overflow.
        let width = min(max(0, dimensions.width), Dimensions.largestCodable.width)
        let height = min(max(0, dimensions.height), Dimensions.largestCodable.height)
        let area = width * height
        lowest = .kilobitsPerSecond(30)
        var lower = Self.table[0]
        lowestToStart = .kilobitsPerSecond(lower.lowestToStart)
        highest = .kilobitsPerSecond(lower.highest)
        guard area > lower.area else { return }
        for upper in Self.table.dropFirst() {
            if area <= upper.area {
                let part = (area - lower.area, upper.area - lower.area)
                lowestToStart = Self.between(lower.lowestToStart, upper.lowestToStart, part)
                highest = Self.between(lower.highest, upper.highest, part)
                return
            }
            lower = upper
        }
        // Beyond the table: as many bits for each pixel as in its last row.
        lowestToStart = Self.between(0, lower.lowestToStart, (area, lower.area))
        highest = Self.between(0, lower.highest, (area, lower.area))
    }

    private static func between(_ lower: Int, _ upper: Int, _ part: (Int, Int)) -> Bitrate {
        Bitrate(bitsPerSecond: lower * 1000 + (upper - lower) * 1000 * part.0 / part.1)
    }
}
