/// Which tracks a window shows: all of them, or one alone.
///
/// A track that is shown alone stays so when others come and go. When it goes itself, all others are shown.
package struct TileSelection: Hashable, Sendable {
    /// The track that is shown alone; `nil` while all are.
    private var alone: String?

    /// Shows all tracks.
    package init() {}

    /// The tracks that are shown, out of `tracks`, which are all there are, in the window's order.
    package func shown(of tracks: [String]) -> [String] {
        guard let alone, tracks.contains(alone) else { return tracks }
        return [alone]
    }

    /// Shows all tracks.
    package mutating func showAll() { alone = nil }

    /// Shows the track with the given number alone, counted from 1; does nothing if there is none.
    package mutating func show(_ number: Int, of tracks: [String]) {
        if tracks.indices.contains(number - 1) { alone = tracks[number - 1] }
    }

    /// Goes on to the next track, or back to the one before: from all to the first or last, one by one, and to all
    /// again.
    package mutating func step(forward: Bool, of tracks: [String]) {
        // All of them together stand before the first and after the last.
        let places = [nil] + tracks.map(Optional.some)
        let place = places.firstIndex(of: shown(of: tracks) == tracks ? nil : alone) ?? 0
        alone = places[(place + (forward ? 1 : places.count - 1)) % places.count]
    }
}
