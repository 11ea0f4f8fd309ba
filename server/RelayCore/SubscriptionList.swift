/// The subscriptions of a participant, in any order.
///
/// The track of each is kept a second time, in an array that holds nothing else, so that a track among hundreds is found
/// fast. Only this type changes the two arrays, so that they agree: a subscription never changes its track.
struct SubscriptionList: RandomAccessCollection, Sendable {
    typealias Element = SubscriberState.Subscription

    // First, because the memory is fetched by the reference with which a participant's part of the table begins.
    private var elements: [Element] = []
    private var tracks: [TrackID] = []

    var startIndex: Int { 0 }
    var endIndex: Int { elements.count }

    subscript(_ index: Int) -> Element {
        @inline(__always) _read { yield elements[index] }
        @inline(__always) _modify {
            defer { assert(elements[index].track == tracks[index], "a subscription took another one's place") }
            yield &elements[index]
        }
    }

    /// The index of the subscription to `track`.
    func index(of track: TrackID) -> Int? { tracks.firstIndex(of: track) }

    mutating func append(_ subscription: Element) {
        elements.append(subscription)
        tracks.append(subscription.track)
    }

    /// Removes any subscription; `nil` if there is none.
    mutating func popLast() -> Element? { isEmpty ? nil : remove(at: count - 1) }

    /// Removes the subscription at `index`; the last one takes its place.
    ///
    /// - Returns: The subscription.
    mutating func remove(at index: Int) -> Element {
        elements.swapAt(index, count - 1)
        tracks.swapAt(index, count - 1)
        tracks.removeLast()
        return elements.removeLast()
    }
}
