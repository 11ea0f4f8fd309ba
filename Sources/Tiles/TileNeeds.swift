package import MediaCore

/// What a window needs of each track: pictures as large as its tile, or none while its tile is hidden.
///
/// Every change may cost a publisher a keyframe. So a change waits until the window's layout is at rest, small ones are
/// left out, and only what is too small to be seen well is asked for at once.
package struct TileNeeds: Sendable {
    /// How long a layout must stay as it is, for example while somebody drags a corner of the window.
    private static let restTime = Duration.milliseconds(300)
    /// A tile with less than this part of the pixels that come is worth a change.
    private static let smallPart = 0.5

    /// What a tile needs.
    package enum Need: Hashable, Sendable {
        /// Nothing, because nobody sees it.
        case nothing
        /// Pictures of this size, or larger.
        case pictures(Dimensions)
    }

    /// The needs that were last returned, by the tracks' ids.
    private var known: [String: Need] = [:]
    /// The needs of the layout, and since when it has been as it is.
    private var layout: [String: Need] = [:]
    private var restsSince: MonotonicInstant?

    /// No tile yet.
    package init() {}

    /// Notes what the tracks that the window has now need, by their ids.
    ///
    /// - Returns: The tracks for which something else must be asked for than before.
    package mutating func changes(to needs: [String: Need], at now: MonotonicInstant) -> [String: Need] {
        if needs != layout { (layout, restsSince) = (needs, now) }
        let isAtRest = restsSince.map { now.duration(since: $0) >= Self.restTime } ?? false
        known = known.filter { needs[$0.key] != nil }
        let changes = needs.filter { sid, need in
            switch (known[sid], need) {
            case (nil, _), (.nothing, .pictures): true
            case (.nothing, .nothing): false
            case (.pictures, .nothing): isAtRest
            case (.pictures(let known), .pictures(let need)): isAtRest && !Self.suffices(known, for: need)
            }
        }
        known.merge(changes) { $1 }
        return changes
    }

    private static func suffices(_ known: Dimensions, for need: Dimensions) -> Bool {
        let isLargeEnough = known.width >= need.width && known.height >= need.height
        return isLargeEnough && Double(need.area) >= smallPart * Double(known.area)
    }
}
